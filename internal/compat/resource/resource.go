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
	Paths []string // as in the table: files, and directories with a trailing slash
	Mode  lockkeeper.Mode
	Node  bool // Paths is one node in a tree of resources, not in the codebase
}

// Locks returns the locks of the resource. With all, they include everything below a node.
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

// compare defines the global order: by the first path that resources cover.
func (r Resource) compare(o Resource) int {
	return cmp.Or(r.first().Compare(o.first()), strings.Compare(r.Name, o.Name))
}

func (r Resource) first() lockkeeper.Target {
	locks := r.Locks(r.Mode, false)
	return slices.MinFunc(locks, func(a, b lockkeeper.Lock) int { return a.Compare(b.Target) }).Target
}

// A Set is the checked tables of one configuration.
type Set struct {
	names      []string // in the order of the table
	rows       map[string]*row
	operations map[string]*operation
	listed     []string // operations, in the order of the table
}

// A row is a row of the table, which may describe many resources.
type row struct {
	name     string      // as in the table
	template *template   // of the names of its resources
	files    []*template // only of a row of files
	node     bool        // template is the path of a node, which is also its name
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

// nearest returns the next step for an unknown name.
func (s *Set) nearest(typed string) string {
	if r := s.rows[typed]; r != nil { // a pattern instead of a name
		return "replace each placeholder, as in " + r.example()
	}
	var known []string
	digits := regexp.MustCompile(`[0-9]+`).FindString(typed)
	for _, n := range s.names {
		r := s.rows[n]
		if nn, ok := padded(digits); ok && slices.Equal(r.template.placeholders, []string{number}) {
			numbered := r.template.fill(map[string]string{number: nn})
			if digits == typed { // a number alone, as prompts accept it
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

// resource returns the resource of a row with these placeholder values.
func (r *row) resource(values map[string]string) Resource {
	res := Resource{Name: r.template.fill(values), Mode: r.mode, Node: r.node}
	if r.node {
		res.Paths = []string{res.Name}
	}
	for _, f := range r.files {
		res.Paths = append(res.Paths, f.fill(values))
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
			places = []*template{r.template}
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
	occurrences  []string // names, as often as they occur
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

// fits reports whether a value is valid for a placeholder.
func fits(name, value string) bool {
	return regexp.MustCompile(`^` + placeholderPattern(name) + `$`).MatchString(value)
}

// fill replaces the placeholders with values.
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
