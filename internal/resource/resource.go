package resource

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/config"
)

// Resource is one thing that can be locked by its name.
type Resource struct {
	Name  string   // Chapter_03, or the path of a node: project/p1/map/m2
	Paths []string // what it covers, as written in the table: files, and directories with a slash at the end
	Mode  lockkeeper.Mode
	Node  bool // Paths is one place in a tree of resources, not in the codebase
}

// Locks is what a mode of the resource locks; all: with everything below a node.
func (r Resource) Locks(mode lockkeeper.Mode, all bool) []lockkeeper.Lock {
	var list []lockkeeper.Lock
	for _, path := range r.Paths {
		kind := lockkeeper.File
		switch {
		case r.Node && all:
			kind = lockkeeper.Tree
		case r.Node:
			kind = lockkeeper.Node
		case strings.HasSuffix(path, "/"):
			kind = lockkeeper.Dir
		}
		list = append(list, lockkeeper.Lock{Target: lockkeeper.Target{Path: strings.TrimSuffix(path, "/"), Kind: kind}, Mode: mode})
	}
	return list
}

// compare puts resources into the global order: by the first place they cover.
func (r Resource) compare(o Resource) int {
	return cmp.Or(r.first().Compare(o.first()), strings.Compare(r.Name, o.Name))
}

func (r Resource) first() lockkeeper.Target {
	locks := r.Locks(r.Mode, false)
	return slices.MinFunc(locks, func(a, b lockkeeper.Lock) int { return a.Compare(b.Target) }).Target
}

// Set is the checked tables of one configuration.
type Set struct {
	names      []string // of the resources, in the order of the table
	rows       map[string]*row
	operations map[string]*operation
	listed     []string // the operations, in the order of the table
}

// row is a resource of the table, which may stand for many.
type row struct {
	name  string      // as in the table
	known *template   // what the names of its resources look like
	files []*template // of a row of files
	node  bool        // known is the path of a node, which is its name too
	mode  lockkeeper.Mode
}

// Names lists the names and patterns of the table, in its order.
func (s *Set) Names() []string { return slices.Clone(s.names) }

// Resolve finds the resource of a name, such as Chapter_03 for the pattern
// Chapter_{nn}. The error says which names are near.
func (s *Set) Resolve(name string) (Resource, error) {
	for _, n := range s.names {
		if values, ok := s.rows[n].known.match(name); ok {
			return s.rows[n].resource(values), nil
		}
	}
	return Resource{}, &lockkeeper.InputError{Field: "resource", Value: name, Reason: s.unknown(), Next: s.nearest(name)}
}

func (s *Set) unknown() string {
	if len(s.names) == 0 {
		return config.FileName + " names no resources"
	}
	return "not a resource of " + config.FileName
}

// nearest is the step that helps somebody who knows a name nearly.
func (s *Set) nearest(typed string) string {
	if r := s.rows[typed]; r != nil { // a name would have been found
		return "put something in the place of each placeholder, as in " + r.example()
	}
	var known []string
	digits := regexp.MustCompile(`[0-9]+`).FindString(typed)
	for _, n := range s.names {
		r := s.rows[n]
		if nn, ok := padded(digits); ok && slices.Equal(r.known.holes, []string{number}) {
			numbered := r.known.fill(map[string]string{number: nn})
			if digits == typed { // a number alone, as prompts take it
				return "did you mean " + numbered + "?"
			}
			known = append(known, numbered)
			continue
		}
		known = append(known, r.known.text)
	}
	switch near, ok := config.Nearest(strings.ReplaceAll(typed, " ", ""), known); {
	case len(known) == 0:
		return "lockkeeper init book or lockkeeper init fole write a table, or name them yourself, under resources"
	case ok:
		return "did you mean " + near + "?"
	}
	return "use one of " + strings.Join(s.names, ", ")
}

// resource is the one that a row stands for with these values.
func (r *row) resource(values map[string]string) Resource {
	res := Resource{Name: r.known.fill(values), Mode: r.mode, Node: r.node}
	if r.node {
		res.Paths = []string{res.Name}
	}
	for _, f := range r.files {
		res.Paths = append(res.Paths, f.fill(values))
	}
	return res
}

// Covering lists the names of the resources that cover a path, from the root, in the
// order of the table.
func (s *Set) Covering(path string) []string {
	var names []string
	for _, n := range s.names {
		r := s.rows[n]
		places := r.files
		if r.node {
			places = []*template{r.known}
		}
		for _, place := range places {
			values, ok := place.match(path)
			if name := r.known.fill(values); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func modeOf(r *config.Resource) lockkeeper.Mode {
	if r.Mode == "read" {
		return lockkeeper.Read
	}
	return lockkeeper.Write
}
