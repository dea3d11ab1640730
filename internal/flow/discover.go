package flow

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"lockkeeper"
)

// DiscoverOptions select the files that are units.
type DiscoverOptions struct {
	Glob     string   // such as app/controllers/**/*_controller.rb
	Excludes []string // names or patterns: application_controller, blog/posts, admin/**
	TestPath string   // the test file of a controller, with placeholders of a Layout; empty: none
	Layout   Layout   // paths of a controller's parts; Layout.Controller is not used
}

type FoundUnit struct {
	Name   string   `json:"name"`   // such as blog/posts
	Module string   `json:"module"` // such as blog
	File   string   `json:"file"`
	Views  string   `json:"views,omitempty"` // directory of the controller's views, which may be missing
	Test   string   `json:"test,omitempty"`  // test file of the controller, which may be missing
	Files  []string `json:"files"`           // the existing files
}

// Discover lists the controllers of a tree by name. It leaves out invalid ones and names them
// in the error. Examples are a link out of the root and a name with a line break. It follows
// no link to a directory.
func Discover(fsys fs.FS, o DiscoverOptions) ([]FoundUnit, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Glob = path.Clean(o.Glob)
	matches, err := doublestar.Glob(fsys, o.Glob, doublestar.WithNoFollow(), doublestar.WithFailOnIOErrors())
	if err != nil {
		return nil, fmt.Errorf("discovery of %s: %w", o.Glob, err)
	}
	slices.Sort(matches)
	base, _ := doublestar.SplitPattern(o.Glob)
	var found []FoundUnit
	var problems []error
	files := map[string]string{}
	for _, file := range matches {
		name := o.name(base, file)
		if o.excluded(base, file, name) {
			continue
		}
		regular, err := workable(fsys, file)
		if err == nil && regular && files[name] != "" {
			err = refusedFile(file, fmt.Sprintf("it has the same name, %s, as %s", name, files[name]), "make the glob narrower, or exclude one of them")
		}
		if err != nil {
			problems = append(problems, err)
		} else if regular {
			files[name] = file
			found = append(found, o.found(fsys, name, file))
		}
	}
	slices.SortFunc(found, func(a, b FoundUnit) int { return strings.Compare(a.Name, b.Name) })
	return found, errors.Join(problems...)
}

func refusedFile(file, reason, next string) error {
	return &lockkeeper.InputError{Field: "controller", Value: file, Reason: reason, Next: next}
}

func (o DiscoverOptions) check() error {
	for _, p := range append([]string{o.Glob}, o.Excludes...) {
		if !doublestar.ValidatePattern(p) {
			return &lockkeeper.InputError{Field: "glob", Value: p, Reason: "not a pattern", Next: "write it like app/controllers/**/*_controller.rb"}
		}
	}
	if _, err := readable(o.Glob); err != nil || strings.HasSuffix(o.Glob, "/") {
		return &lockkeeper.InputError{Field: "discovery glob", Value: o.Glob, Reason: "not a pattern of files inside the root", Next: "write it like app/controllers/**/*_controller.rb"}
	}
	if _, err := readable(expand(o.TestPath, "name")); err != nil && o.TestPath != "" {
		return &lockkeeper.InputError{Field: "test path", Value: o.TestPath, Reason: "not a path inside the root", Next: "write it like test/controllers/{controller}_controller_test.rb"}
	}
	return nil
}

// name returns the name of the unit in a file: the path without base, and without the text that
// follows the last star of the glob.
func (o DiscoverOptions) name(base, file string) string {
	rest := below(base, file)
	suffix := o.Glob[strings.LastIndexByte(o.Glob, '*')+1:]
	if name, ok := strings.CutSuffix(rest, suffix); ok && name != "" && !strings.HasSuffix(name, "/") && strings.Contains(o.Glob, "*") {
		return name
	}
	return strings.TrimSuffix(rest, path.Ext(rest))
}

func below(base, file string) string {
	if base == "." {
		return file
	}
	return strings.TrimPrefix(file, base+"/")
}

// excluded reports whether a file is in a directory of shared modules, or whether an exclude matches the
// name, the path, the path without extension, or the last part of that: application_controller
// matches every application_controller.rb.
func (o DiscoverOptions) excluded(base, file, name string) bool {
	rest := below(base, file)
	for dir := range strings.SplitSeq(path.Dir(rest), "/") {
		if dir == o.Layout.Shared && dir != "" {
			return true
		}
	}
	bare := strings.TrimSuffix(rest, path.Ext(rest))
	for _, pattern := range o.Excludes {
		for _, called := range []string{name, bare, path.Base(bare), file} {
			if doublestar.MatchUnvalidated(pattern, called) {
				return true
			}
		}
	}
	return false
}

// workable reports whether a path is a regular file. It follows links, and returns an error for an
// invalid name or a link out of the root.
func workable(fsys fs.FS, file string) (regular bool, err error) {
	if _, err := readable(file); err != nil || strings.ContainsFunc(file, isControl) {
		return false, refusedFile(file, "its name has a control character or is not UTF-8", "rename it, or exclude it")
	}
	at := file
	for range 40 { // Linux follows at most 40 links
		info, err := fs.Lstat(fsys, at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != file:
			return false, refusedFile(file, "a link to "+at+", which does not exist", "correct the link, or exclude it")
		case err != nil:
			return false, fmt.Errorf("discovery of %s: %w", file, err)
		case info.Mode()&fs.ModeSymlink == 0:
			return info.Mode().IsRegular(), nil
		}
		to, err := fs.ReadLink(fsys, at)
		if err != nil {
			return false, fmt.Errorf("discovery of %s: %w", file, err)
		}
		next := path.Join(path.Dir(at), to)
		if path.IsAbs(to) || !fs.ValidPath(next) {
			return false, refusedFile(file, "a link out of the root, to "+to, "put the file itself there, or exclude it")
		}
		at = next
	}
	return false, refusedFile(file, "a link that leads to itself", "correct the link, or exclude it")
}

func (o DiscoverOptions) found(fsys fs.FS, name, file string) FoundUnit {
	f := FoundUnit{Name: name, File: file, Views: expand(o.Layout.Views, name), Test: expand(o.TestPath, name)}
	if dir := path.Dir(name); dir != "." {
		f.Module = dir
	}
	parts := append(o.Layout.of(name, file), f.Test)
	for _, template := range o.Layout.Tests {
		parts = append(parts, expand(template, name))
	}
	for _, scope := range scopes(name) {
		for _, template := range slices.Concat(o.Layout.Models, o.Layout.ModelTests) {
			parts = append(parts, expand(template, scope))
		}
	}
	for _, part := range parts {
		if _, err := fs.Stat(fsys, strings.TrimSuffix(part, "/")); part != "" && err == nil && !slices.Contains(f.Files, part) {
			f.Files = append(f.Files, part)
		}
	}
	return f
}

// scopes lists the names under which a controller finds its model, the most exact first: for
// api/blog/posts also blog/posts and api/posts, and then posts.
func scopes(name string) []string {
	list := []string{name}
	dir, base := path.Split(name)
	modules := strings.Split(strings.Trim(dir, "/"), "/")
	if dir == "" {
		modules = nil
	}
	for n := len(modules) - 1; n >= 0; n-- {
		for _, some := range [][]string{modules[len(modules)-n:], modules[:n]} {
			if at := path.Join(append(slices.Clone(some), base)...); !slices.Contains(list, at) {
				list = append(list, at)
			}
		}
	}
	return list
}

// Units has the units of a flow and the facts about each from its source.
type Units struct {
	Names  []string
	Found  map[string]FoundUnit   // units of a flow with the source Codebase
	Groups map[string]ScreenGroup // units of a flow with the source FromManifest
}

// Units finds the units of the flow in its source. If some units are invalid, it returns the
// others together with an error.
func (f Flow) Units(tree fs.FS, o DiscoverOptions, manifest *Manifest) (Units, error) {
	u := Units{Found: map[string]FoundUnit{}, Groups: map[string]ScreenGroup{}}
	switch f.Source {
	case FromPlan:
		u.Names = []string{f.OneUnit}
		return u, nil
	case FromManifest:
		for _, g := range manifest.Controllers() {
			u.Names, u.Groups[g.Unit] = append(u.Names, g.Unit), g
		}
		return u, nil
	}
	found, err := Discover(tree, o)
	for _, at := range found {
		u.Names, u.Found[at.Name] = append(u.Names, at.Name), at
	}
	return u, err
}

// A Layout has the paths of a controller's parts. In a path, {controller} is the controller with
// its module, {name} the controller without it, {module} the module, and {model} the name in the
// singular. A path that ends with a slash is a directory.
type Layout struct {
	Controller string
	Views      string
	Models     []string
	ModelTests []string
	Tests      []string // tests of the controller
	Also       []string // dependencies of every controller
	Shared     string   // name of the directories with modules that controllers share; empty: none
}

func Rails() Layout {
	return Layout{
		Controller: "app/controllers/{controller}_controller.rb",
		Views:      "app/views/{controller}/",
		Models:     []string{"app/models/{module}/{model}.rb"},
		ModelTests: []string{"spec/models/{module}/{model}_spec.rb", "test/models/{module}/{model}_test.rb"},
		Tests:      []string{"spec/controllers/{controller}_controller_spec.rb", "spec/requests/{controller}_spec.rb", "test/controllers/{controller}_controller_test.rb"},
		Also:       []string{"config/routes.rb"},
		Shared:     "concerns",
	}
}

// TestOf returns the test file of a controller, from a template with placeholders of a Layout.
func TestOf(template, controller string) string { return expand(template, controller) }

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
