package resource

import (
	"cmp"
	"slices"
	"strings"

	"lockkeeper"
)

// NodeLocks returns the locks of a node: of the node itself and its files, or with a slash at
// the end of its name of everything below it as well.
func (s *Set) NodeLocks(name string, mode lockkeeper.Mode) ([]lockkeeper.Lock, error) {
	path, all := strings.CutSuffix(name, "/")
	r, err := s.Resolve(path)
	switch {
	case lockkeeper.CodeOf(err) == lockkeeper.CodeInput:
		return nil, &lockkeeper.InputError{Field: "node", Value: name, Reason: s.unknown(), Next: s.nodes()}
	case err != nil:
		return nil, err
	case !r.Node:
		return nil, &lockkeeper.InputError{Field: "node", Value: name, Reason: "a resource of files, not a node", Next: "name its files, or lockkeeper claim " + name}
	}
	return r.Locks(mode, all), nil
}

// nodes returns a hint that says how to name a node.
func (s *Set) nodes() string {
	var forms []string
	for _, n := range s.names {
		if r := s.rows[n]; r.node {
			forms = append(forms, r.template.text)
		}
	}
	if len(forms) == 0 {
		return "run lockkeeper init fole, or add one with node under resources"
	}
	return "name one by its path: " + strings.Join(forms, ", ")
}

// above returns the directory with all that a template stands for: its path up to the first
// placeholder without a value.
func (t *template) above(values map[string]string) string {
	filled := placeholder.ReplaceAllStringFunc(t.text, func(s string) string { return cmp.Or(values[s[1:len(s)-1]], s) })
	open := strings.IndexByte(filled, '{')
	if open < 0 {
		return filled
	}
	return filled[:strings.LastIndexByte(filled[:open], '/')+1]
}

// withNodes turns the nodes among the named resources into ids of their level: project/p1/map/m2
// is the map p1/m2.
func (s *Set) withNodes(a Args) Args {
	of := a.Of
	a.Of = nil
	for _, name := range of {
		values, row := map[string]string(nil), (*row)(nil)
		for _, r := range s.rows {
			if v, ok := r.template.match(name); ok && r.node {
				values, row = v, r
			}
		}
		if row == nil {
			a.Of = append(a.Of, name)
			continue
		}
		var ids []string
		for _, level := range row.template.placeholders {
			ids = append(ids, values[level])
		}
		id := strings.Join(ids, "/")
		switch len(ids) {
		case 1:
			a.Project = append(slices.Clip(a.Project), id)
		case 2:
			a.Map = append(slices.Clip(a.Map), id)
		default:
			a.Sketch = append(slices.Clip(a.Sketch), id)
		}
	}
	return a
}
