package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
)

// A Manifest lists the screens of a codebase. People write it.
type Manifest struct {
	Screens []ManifestScreen `json:"screens" min:"1" doc:"Every screen, once." each:"One screen."`

	file string // name of the file in messages
	text []byte
}

type ManifestScreen struct {
	Name             string   `json:"name" text:"words" doc:"The name that people use for the screen."`
	Module           string   `json:"module" doc:"The module that the screen belongs to. Empty if it belongs to none."`
	Controller       string   `json:"controller" text:"words" doc:"The controller that serves the screen."`
	PrimaryAction    string   `json:"primary_action" text:"words" doc:"The action that shows the screen."`
	SecondaryActions []string `json:"secondary_actions" text:"words" doc:"Other actions that belong to the screen." each:"An action."`
	ReadsFrom        []string `json:"reads_from" text:"words" doc:"Files and directories that the screen depends on beyond its controller, views and models." each:"Path relative to the root."`
}

// Unit returns the controller with its module, such as blog/posts.
func (s ManifestScreen) Unit() string {
	if s.Module == "" || strings.HasPrefix(s.Controller, s.Module+"/") {
		return s.Controller
	}
	return s.Module + "/" + s.Controller
}

// ID returns the name of the screen, which is unique in the manifest.
func (s ManifestScreen) ID() string { return s.Unit() + "/" + s.Name }

// ReadManifest reads a manifest and reports all problems of its entries at once. Messages use
// name for the file.
func ReadManifest(name string, text []byte) (*Manifest, error) {
	if err := fits(manifestFile, name, text); err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, notJSON(name, text, err)
	}
	m.file, m.text = name, text
	var problems []error
	report := func(err error, place ...any) { problems = append(problems, m.wrong(err, place...)) }
	seen := map[string]int{}
	for i, s := range m.Screens {
		for _, name := range []struct{ member, value string }{{"module", s.Module}, {"controller", s.Controller}} {
			if clean, err := readable(name.value); name.value != "" && (err != nil || clean != name.value || strings.HasSuffix(clean, "/") || clean == ".") {
				report(wrong(name.value, "not a plain name", "write it like blog or posts"), i, name.member)
			}
		}
		if strings.ContainsFunc(s.Name, isControl) {
			report(wrong(s.Name, "a control character in it", "write the name on one line"), i, "name")
		}
		if first, twice := seen[s.ID()]; twice {
			report(lockkeeper.WithNext(fmt.Errorf("screen %q of controller %s is already screens/%d", s.Name, s.Unit(), first), "keep one of them"), i)
		}
		seen[s.ID()] = i
		for n, path := range s.ReadsFrom {
			if _, err := readable(path); err != nil {
				report(err, i, "reads_from", n)
			}
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return &m, nil
}

// wrong returns an error at a position in the list of screens.
func (m *Manifest) wrong(err error, place ...any) error {
	return faultAt(err, append([]any{"screens"}, place...)...).inText(m.file, m.text)
}

// CheckReads refuses a path in reads_from that permits refuses.
func (m *Manifest) CheckReads(permits func(path string) error) error {
	var problems []error
	for i, s := range m.Screens {
		for n, path := range s.ReadsFrom {
			if err := permits(path); err != nil {
				problems = append(problems, m.wrong(err, i, "reads_from", n))
			}
		}
	}
	return errors.Join(problems...)
}

type ScreenGroup struct {
	Unit    string           `json:"controller"` // the unit, with its module
	Module  string           `json:"module"`
	Screens []ManifestScreen `json:"screens"`
}

// Controllers groups the screens by controller, both in the order of the manifest.
func (m *Manifest) Controllers() []ScreenGroup {
	var groups []ScreenGroup
	at := map[string]int{}
	for _, s := range m.Screens {
		i, known := at[s.Unit()]
		if !known {
			i = len(groups)
			at[s.Unit()] = i
			groups = append(groups, ScreenGroup{Unit: s.Unit(), Module: s.Module})
		}
		groups[i].Screens = append(groups[i].Screens, s)
	}
	return groups
}

// The scopes of a shared read.
const (
	ModuleScope = "module"
	AppScope    = "app"
)

// A SharedRead is a path that more than one screen depends on. Merges that change it conflict.
type SharedRead struct {
	Path    string   `json:"path"`
	Scope   string   `json:"scope"`
	Screens []string `json:"screens"`
}

// Shared lists the paths that more than one screen declares in reads_from, directly or by a
// directory above them.
func (m *Manifest) Shared() []SharedRead {
	readers := map[string][]int{} // indexes of the screens that declare a path, by the path without its final slash
	spelling := map[string]string{}
	for i, s := range m.Screens {
		for _, path := range Targets(s.ReadsFrom) {
			bare := strings.TrimSuffix(path, "/")
			if !slices.Contains(readers[bare], i) {
				readers[bare] = append(readers[bare], i)
			}
			spelling[bare] = max(spelling[bare], path)
		}
	}
	var shared []SharedRead
	for _, path := range sortedKeys(readers) {
		all := slices.Clone(readers[path])
		for above, ok := lockkeeper.Parent(path); ok; above, ok = lockkeeper.Parent(above) {
			all = append(all, readers[above]...)
		}
		slices.Sort(all)
		if all = slices.Compact(all); len(all) < 2 {
			continue
		}
		s := SharedRead{Path: spelling[path], Scope: ModuleScope}
		for _, i := range all {
			s.Screens = append(s.Screens, m.Screens[i].ID())
			if m.Screens[i].Module != m.Screens[all[0]].Module {
				s.Scope = AppScope
			}
		}
		shared = append(shared, s)
	}
	return shared
}

// A ScreenDoc has the findings on a screen. A finding is a text or an object.
type ScreenDoc struct {
	Screen       string            `json:"screen" text:"words" doc:"Name of the screen."`
	Findings     []json.RawMessage `json:"findings" doc:"The possible improvements, one per entry."`
	WriteTargets []string          `json:"write_targets" text:"words" doc:"Exact paths of the files that the batch changes or creates, relative to the root. Never a directory." each:"Path of one file, relative to the root."`
}

// Aggregate returns the write targets of all screens of a controller.
func Aggregate(docs []ScreenDoc) (targets []string) {
	lists := make([][]string, len(docs))
	for i, d := range docs {
		lists[i] = d.WriteTargets
	}
	return Targets(lists...)
}
