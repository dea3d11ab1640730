package resource

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
)

// levels are the levels of a tree of resources, from the top, as in placeholders and
// flags.
var levels = []string{"project", "map", "sketch"}

// ids returns the given ids of a level.
func (a Args) ids(level string) []string {
	return map[string][]string{"project": a.Project, "map": a.Map, "sketch": a.Sketch}[level]
}

// check validates the ids.
func (a Args) check() error {
	for i, level := range levels {
		path := levels[:i+1]
		for _, id := range a.ids(level) {
			parts := strings.Split(id, "/")
			wrong := slices.ContainsFunc(parts, func(part string) bool { return !fits(level, part) })
			switch {
			case wrong:
				return &lockkeeper.InputError{Field: level, Value: id, Reason: "not an id of letters, digits, dots, - and _",
					Next: "use the id of the data, prefixed with its parents if it is ambiguous"}
			case len(parts) > len(path):
				return &lockkeeper.InputError{Field: level, Value: id, Reason: fmt.Sprintf("%d ids, but a %s has at most %d", len(parts), level, len(path)),
					Next: "use the form " + strings.Join(path, "/")}
			}
		}
	}
	return nil
}

// implied returns the ids of a level that prefix ids of lower levels.
func (a Args) implied(level string) (ids []string) {
	i := slices.Index(levels, level) + 1
	if i == len(levels) {
		return nil
	}
	for _, id := range slices.Concat(a.ids(levels[i]), a.implied(levels[i])) {
		if at := strings.LastIndex(id, "/"); at > 0 {
			ids = append(ids, id[:at])
		}
	}
	return ids
}

// nodes returns the selected nodes of a row.
func (a Args) nodes(r *row, e *UnclearError) (list []Resource) {
	level := r.template.placeholders[len(r.template.placeholders)-1]
	for _, ids := range a.idPaths(r.template.placeholders, slices.Concat(a.ids(level), a.implied(level)), e) {
		values := map[string]string{}
		for i, level := range r.template.placeholders {
			values[level] = ids[i]
		}
		list = append(list, r.resource(values))
	}
	return list
}

// idPaths returns the ids of the given nodes, from the top level down. The parents of a
// node are its prefix, as in p1/m2, or the one id given for the level above. They are
// never implied by another node.
func (a Args) idPaths(path, given []string, e *UnclearError) (list [][]string) {
	level := path[len(path)-1]
	if len(given) == 0 {
		e.add("which "+level+" is meant", "name it with --"+level)
	}
	add := func(ids []string) {
		if !slices.ContainsFunc(list, func(known []string) bool { return slices.Equal(known, ids) }) {
			list = append(list, ids)
		}
	}
	for _, id := range given {
		parts := strings.Split(id, "/")
		above := path[:len(path)-len(parts)]
		if len(above) == 0 {
			add(parts)
			continue
		}
		parent := above[len(above)-1]
		switch parents := a.idPaths(above, a.ids(parent), e); {
		case len(parents) == 1:
			add(slices.Concat(parents[0], parts))
		case len(parents) > 1:
			e.add(fmt.Sprintf("which of the %d %ss %s %s is in", len(parents), parent, level, strconv.Quote(id)),
				fmt.Sprintf("name it with its %s: --%s %s/%s", parent, level, parents[0][len(parents[0])-1], id))
		}
	}
	return list
}

// checkScope refuses ids of a level that the operation does not use, because the caller
// may have meant another operation.
func (op *operation) checkScope(a Args, e *UnclearError) {
	for _, level := range levels {
		works := slices.ContainsFunc(op.uses, func(u use) bool { return slices.Contains(u.row.template.placeholders, level) })
		if given := a.ids(level); len(given) > 0 && !works {
			e.add(fmt.Sprintf("how %s %s is related: it works on %s", level, strconv.Quote(given[0]), op.resourceNames()), "remove --"+level+", or name another operation")
		}
	}
}
