package flow

import (
	"path"
	"strings"
)

// A Layout has the paths of a controller's parts. In a path, {controller} is the controller with
// its module, {name} the controller without it, {module} the module, and {model} the name in the
// singular. A path that ends with a slash is a directory.
type Layout struct {
	Controller string
	Views      string
	Models     []string
	Also       []string // dependencies of every controller
}

// Rails returns the layout of Rails.
func Rails() Layout {
	return Layout{
		Controller: "app/controllers/{controller}_controller.rb",
		Views:      "app/views/{controller}/",
		Models:     []string{"app/models/{module}/{model}.rb"},
		Also:       []string{"config/routes.rb"},
	}
}

// TestOf returns the test file of a controller, from a template with placeholders of a Layout.
func TestOf(template, controller string) string { return expand(template, controller) }

// expand fills in a path of a layout for a controller.
func expand(template, controller string) string {
	dir, name := path.Split(controller)
	filled := strings.NewReplacer(
		"{controller}", controller,
		"{name}", name,
		"{module}", strings.TrimSuffix(dir, "/"),
		"{model}", singular(name),
	).Replace(template)
	if filled == "" {
		return ""
	}
	clean := path.Clean(filled)
	if strings.HasSuffix(filled, "/") {
		clean += "/"
	}
	return clean
}

// singular guesses the singular of an English word.
func singular(word string) string {
	for _, ending := range []struct{ plural, single string }{
		{"ies", "y"}, {"sses", "ss"}, {"shes", "sh"}, {"ches", "ch"}, {"xes", "x"}, {"uses", "us"}, {"ss", "ss"}, {"us", "us"}, {"s", ""},
	} {
		if stem, ok := strings.CutSuffix(word, ending.plural); ok && stem != "" {
			return stem + ending.single
		}
	}
	return word
}

// of lists the paths of a controller's parts. The caller passes the controller's own file.
func (l Layout) of(controller, file string) []string {
	parts := []string{file, expand(l.Views, controller)}
	for _, model := range l.Models {
		parts = append(parts, expand(model, controller))
	}
	for _, also := range l.Also {
		parts = append(parts, expand(also, controller))
	}
	return parts
}

// ReadsOf lists the files that the analysis of a screen reads: its controller, the views, the
// models and the reads_from of the manifest.
func (l Layout) ReadsOf(s ManifestScreen) []string {
	l.Also = nil
	unit := s.Unit()
	return Targets(l.of(unit, expand(l.Controller, unit)), s.ReadsFrom)
}
