package resource

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project/config"
)

// A Resource is something that can be locked by name.
type Resource struct {
	Name  string   // Chapter_03, or the path of a node: project/p1/map/m2
	Paths []string // paths as in the table: files, and directories with a trailing slash
	Mode  lockkeeper.Mode
	Node  bool     // Paths is one node in a tree of resources, not in the codebase
	Files []string // for a node: the files that are its own, as in the table
	Below []string // for a node: its files and directories, and those of all nodes below it
}

// Locks returns the locks of the resource: of a node that node and its files. If all is set,
// they include everything below a node.
func (r Resource) Locks(mode lockkeeper.Mode, all bool) []lockkeeper.Lock {
	files := r.Paths
	var list []lockkeeper.Lock
	if r.Node {
		kind := lockkeeper.Node
		files = r.Files
		if all {
			kind = lockkeeper.Tree
			files = slices.Concat(r.Files, r.Below)
		}
		list = append(list, lockkeeper.Lock{Target: lockkeeper.Target{Path: r.Name, Kind: kind}, Mode: mode})
	}
	for _, path := range files {
		l := lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: mode}
		if dir, is := strings.CutSuffix(path, "/"); is {
			l.Path, l.Kind = dir, lockkeeper.Dir
		}
		list = append(list, l)
	}
	return list
}

// compare defines the global order: by the first path that resources cover.
func (r Resource) compare(o Resource) int {
	return cmp.Or(r.first().Compare(o.first()), strings.Compare(r.Name, o.Name))
}

func (r Resource) first() lockkeeper.Target {
	if r.Node {
		return lockkeeper.Target{Path: r.Name, Kind: lockkeeper.Node}
	}
	locks := r.Locks(r.Mode, false)
	return slices.MinFunc(locks, func(a, b lockkeeper.Lock) int { return a.Compare(b.Target) }).Target
}

// A Set is the checked tables of one configuration.
type Set struct {
	names      []string // names in the order of the table
	rows       map[string]*row
	operations map[string]*operation
	listed     []string // operations, in the order of the table
}

// A row is a row of the table, which may describe many resources.
type row struct {
	name     string      // name as in the table
	template *template   // template of the names of the resources
	files    []*template // what the resource covers; for a node, its own files
	node     bool        // the template is the path of a node, which is also the node's name
	below    []*row      // the nodes below a node
	mode     lockkeeper.Mode
}

// Names returns the names and patterns of the table, in its order.
func (s *Set) Names() []string { return slices.Clone(s.names) }

// Resolve returns the resource with a name, for example Chapter_03 for the pattern
// Chapter_{nn}. The error suggests similar names.
func (s *Set) Resolve(name string) (Resource, error) {
	for _, n := range s.names {
		if values, ok := s.rows[n].template.match(name); ok {
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

func (s *Set) nearest(typed string) string {
	if r := s.rows[typed]; r != nil { // the text is a pattern instead of a name
		return "replace each placeholder, as in " + r.example()
	}
	var known []string
	digits := regexp.MustCompile(`[0-9]+`).FindString(typed)
	for _, n := range s.names {
		r := s.rows[n]
		if nn, ok := padded(digits); ok && slices.Equal(r.template.placeholders, []string{number}) {
			numbered := r.template.fill(map[string]string{number: nn})
			if digits == typed { // a number alone is accepted, because prompts accept one
				return "did you mean " + numbered + "?"
			}
			known = append(known, numbered)
			continue
		}
		known = append(known, r.template.text)
	}
	switch near, ok := config.Nearest(strings.ReplaceAll(typed, " ", ""), known); {
	case len(known) == 0:
		return "run lockkeeper init book or lockkeeper init fole, or add them under resources"
	case ok:
		return "did you mean " + near + "?"
	}
	return "use one of " + strings.Join(s.names, ", ")
}

func (r *row) resource(values map[string]string) Resource {
	res := Resource{Name: r.template.fill(values), Mode: r.mode, Node: r.node}
	if r.node {
		res.Paths = []string{res.Name}
	}
	for _, f := range r.files {
		if r.node {
			res.Files = append(res.Files, f.fill(values))
		} else {
			res.Paths = append(res.Paths, f.fill(values))
		}
	}
	for _, b := range r.below {
		for _, f := range b.files {
			if above := f.above(values); !slices.Contains(res.Below, above) {
				res.Below = append(res.Below, above)
			}
		}
	}
	return res
}

// Covering returns the names of the resources that cover a path, in the order of the
// table.
func (s *Set) Covering(path string) []string {
	var names []string
	for _, n := range s.names {
		r := s.rows[n]
		places := r.files
		if r.node {
			places = append([]*template{r.template}, places...)
		}
		for _, place := range places {
			values, ok := place.match(path)
			if name := r.template.fill(values); ok && !slices.Contains(names, name) {
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

// number is the placeholder of a number with at least two digits: 03, 15, 100.
const number = "nn"

var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// below matches the rest of a path below a covering path.
const below = `(?:/.*)?`

// A template is a text with placeholders, such as Chapter_{nn}.
type template struct {
	text         string
	placeholders []string // names, each once, in order
	occurrences  []string // names, each as often as it occurs
	pattern      *regexp.Regexp
}

// templateOf parses a text with placeholders. rest matches what may follow the text. A
// trailing slash is ignored.
func templateOf(text, rest string) (_ *template, err error) {
	t := &template{text: text}
	form, end := "", 0
	text = strings.TrimSuffix(text, "/")
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		t.occurrences = append(t.occurrences, name)
		if !slices.Contains(t.placeholders, name) {
			t.placeholders = append(t.placeholders, name)
		}
		form += regexp.QuoteMeta(text[end:at[0]]) + placeholderPattern(name)
		end = at[1]
	}
	if strings.ContainsAny(placeholder.ReplaceAllString(text, ""), "{}") {
		return nil, fmt.Errorf("a brace that is not part of a placeholder such as {nn}")
	}
	if t.pattern, err = regexp.Compile(`^` + form + regexp.QuoteMeta(text[end:]) + rest + `$`); err != nil {
		return nil, fmt.Errorf("too many placeholders")
	}
	return t, nil
}

// placeholderPattern returns the pattern of a placeholder's values. Ids are ASCII, so that
// identical-looking ids are identical.
func placeholderPattern(name string) string {
	if name == number {
		return `(0[0-9]|[1-9][0-9]+)`
	}
	return `([0-9A-Za-z][0-9A-Za-z_.-]*)`
}

func fits(name, value string) bool {
	return regexp.MustCompile(`^` + placeholderPattern(name) + `$`).MatchString(value)
}

func (t *template) fill(values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(t.text, func(s string) string { return values[s[1:len(s)-1]] })
}

// match returns the placeholder values for which the template matches text. Repeated
// placeholders must have the same value.
func (t *template) match(text string) (map[string]string, bool) {
	found := t.pattern.FindStringSubmatch(text)
	if found == nil {
		return nil, false
	}
	values := map[string]string{}
	for i, name := range t.occurrences {
		value := found[i+1]
		if before, ok := values[name]; ok && before != value {
			return nil, false
		}
		values[name] = value
	}
	return values, true
}

// padded formats a number with at least two digits.
func padded(text string) (string, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return fmt.Sprintf("%02d", n), err == nil
}

// levels are the levels of a tree of resources, from the top, as in placeholders and
// flags.
var levels = []string{"project", "map", "sketch"}

func (a Args) ids(level string) []string {
	return map[string][]string{"project": a.Project, "map": a.Map, "sketch": a.Sketch}[level]
}

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
