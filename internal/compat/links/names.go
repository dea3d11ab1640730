package links

import (
	"math/bits"
	"path"
	"slices"
	"strings"
	"sync"

	"lockkeeper/internal/project/config"
)

// names finds files by name and by similar names. It is safe for concurrent use.
type names struct {
	called map[string][]string // paths by base name, sorted
	inside map[string][]named  // the names in each directory
	all    []named             // all base names, each once
	near   sync.Map            // similar names, by name
}

// A suggestion is the probable path for a missing one, or empty.
type suggestion struct{ moved, nearest string }

// A named is a name with its parts and letters. Names whose letters differ much cannot be
// similar.
type named struct {
	name         string
	stem, ending string // parts of the file name, in lower case
	letters      uint64 // the set of letters in the stem
}

func newNamed(name string) named {
	lower := strings.ToLower(name)
	n := named{name: name, ending: path.Ext(lower)}
	n.stem = strings.TrimSuffix(lower, n.ending)
	for _, c := range []byte(n.stem) {
		n.letters |= 1 << (c & 63)
	}
	return n
}

func newNames(f *files) *names {
	n := &names{called: map[string][]string{}, inside: map[string][]named{}}
	for _, name := range f.names {
		base := path.Base(name)
		n.called[base] = append(n.called[base], name)
		n.inside[path.Dir(name)] = append(n.inside[path.Dir(name)], newNamed(base))
	}
	for base, paths := range n.called {
		slices.Sort(paths)
		n.all = append(n.all, newNamed(base))
	}
	byName := func(a, b named) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(n.all, byName)
	for _, list := range n.inside {
		slices.SortFunc(list, byName)
	}
	return n
}

// commonNames are too common to identify a moved file without its directory.
var commonNames = strings.Fields("readme.md index.md changelog.md contributing.md license.md license license.txt summary.md index.html index.js index.ts main.go doc.go main.py __init__.py package.json mod.rs")

// moved returns the new path of a missing file: the file with the same name that shares
// most of its path, preferring an archive. It returns "" if that is ambiguous.
func (n *names) moved(missing string) string {
	base := path.Base(missing)
	most, best := 0, []string(nil)
	for _, name := range n.called[base] {
		switch shared := sharedEnd(name, missing); {
		case shared > most:
			most, best = shared, []string{name}
		case shared == most:
			best = append(best, name)
		}
	}
	if archived := slices.DeleteFunc(slices.Clone(best), func(name string) bool { return !isArchived(name) }); len(best) > 1 {
		best = archived
	}
	if len(best) != 1 || most == 1 && slices.Contains(commonNames, strings.ToLower(base)) {
		return ""
	}
	return best[0]
}

func isArchived(name string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(part string) bool {
		return strings.EqualFold(part, "archive") || strings.EqualFold(part, "archived")
	})
}

// sharedEnd counts the parts that two paths share at the end.
func sharedEnd(a, b string) (n int) {
	for {
		restA, lastA := path.Split(a)
		restB, lastB := path.Split(b)
		if lastA != lastB || lastA == "" {
			return n
		}
		n++
		a, b = strings.TrimSuffix(restA, "/"), strings.TrimSuffix(restB, "/")
	}
}

func (n *names) suggest(missing string) suggestion {
	if moved := n.moved(missing); moved != "" {
		return suggestion{moved: moved, nearest: moved}
	}
	return suggestion{nearest: n.nearest(missing)}
}

// nearest returns a path spelled almost like a missing one, preferably in the same
// directory.
func (n *names) nearest(missing string) string {
	missing = strings.ReplaceAll(missing, `\`, "/")
	dir, base := path.Dir(missing), path.Base(missing)
	if near := nearestOf(base, n.inside[dir]); near != "" {
		return path.Join(dir, near)
	}
	near, ok := n.near.Load(base)
	if !ok {
		near = nearestOf(base, n.all)
		n.near.Store(base, near)
	}
	if near == "" {
		return ""
	}
	return slices.MaxFunc(n.called[near.(string)], func(a, b string) int {
		return sharedEnd(path.Dir(a), dir) - sharedEnd(path.Dir(b), dir)
	})
}

// nearestOf returns the name that was probably meant, or "". It has the same extension, or
// the same stem. Most typos are in one spot, so names that differ in one spot are compared
// first.
func nearestOf(name string, among []named) string {
	typed := newNamed(name)
	if near := typed.nearest(among, func(n named) bool { return typed.difference(n) <= 3 }); near != "" {
		return near
	}
	return typed.nearest(among, func(n named) bool { return bits.OnesCount64(n.letters^typed.letters) <= 6 })
}

// nearest returns the most similar of the names that pass mayBe.
func (typed named) nearest(among []named, mayBe func(named) bool) string {
	var stems []string
	origin := map[string]string{}
	for _, n := range among {
		if n.ending != typed.ending && n.stem != typed.stem || max(len(n.stem)-len(typed.stem), len(typed.stem)-len(n.stem)) > 3 || !mayBe(n) {
			continue
		}
		if _, known := origin[n.stem]; !known || n.ending == typed.ending {
			stems, origin[n.stem] = append(stems, n.stem), n.name
		}
	}
	near, _ := config.Nearest(typed.stem, stems)
	return origin[near]
}

// difference returns the length of the part in which two names differ, between their
// common ends.
func (typed named) difference(n named) int {
	a, b := typed.stem, n.stem
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return max(len(a), len(b))
}
