package resource

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
)

// The levels of a tree of resources, from the top, as placeholders and flags name them.
var levels = []string{"project", "map", "sketch"}

// ids are those that were given for a level.
func (a Args) ids(level string) []string {
	return map[string][]string{"project": a.Project, "map": a.Map, "sketch": a.Sketch}[level]
}

// check refuses what cannot be an id.
func (a Args) check() error {
	for i, level := range levels {
		path := levels[:i+1]
		for _, id := range a.ids(level) {
			parts := strings.Split(id, "/")
			wrong := slices.ContainsFunc(parts, func(part string) bool { return !fits(level, part) })
			switch {
			case wrong:
				return &lockkeeper.InputError{Field: level, Value: id, Reason: "not an id of letters, digits, dots, - and _",
					Next: "give the id as it is known to the data, behind those of its parents where there are several"}
			case len(parts) > len(path):
				return &lockkeeper.InputError{Field: level, Value: id, Reason: fmt.Sprintf("%d ids, and a %s has %d at most", len(parts), level, len(path)),
					Next: "give it as " + strings.Join(path, "/")}
			}
		}
	}
	return nil
}

// implied are the ids of a level that stand before ids of the levels below it.
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

// nodes finds the nodes of a row that are meant.
func (a Args) nodes(r *row, e *UnclearError) (list []Resource) {
	level := r.known.holes[len(r.known.holes)-1]
	for _, ids := range a.places(r.known.holes, slices.Concat(a.ids(level), a.implied(level)), e) {
		values := map[string]string{}
		for i, level := range r.known.holes {
			values[level] = ids[i]
		}
		list = append(list, r.resource(values))
	}
	return list
}

// places finds the ids, from the top down to the last level of a path, of the nodes
// given there. A node's parents are those that stand before it, as in p1/m2, or the
// one that was named on the level above; never one that another node implies.
func (a Args) places(path, given []string, e *UnclearError) (list [][]string) {
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
		switch parents := a.places(above, a.ids(parent), e); {
		case len(parents) == 1:
			add(slices.Concat(parents[0], parts))
		case len(parents) > 1:
			e.add(fmt.Sprintf("which of the %d %ss %s %s is in", len(parents), parent, level, strconv.Quote(id)),
				fmt.Sprintf("name it with its %s: --%s %s/%s", parent, level, parents[0][len(parents[0])-1], id))
		}
	}
	return list
}

// checkScope refuses ids on a level that the operation does not work on: whoever gave
// them may have meant another one.
func (op *operation) checkScope(a Args, e *UnclearError) {
	for _, level := range levels {
		works := slices.ContainsFunc(op.uses, func(u use) bool { return slices.Contains(u.row.known.holes, level) })
		if given := a.ids(level); len(given) > 0 && !works {
			e.add(fmt.Sprintf("what %s %s is to it: it works on %s", level, strconv.Quote(given[0]), op.works()), "leave --"+level+" out, or name the operation that is meant")
		}
	}
}
