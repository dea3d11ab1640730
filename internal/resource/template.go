package resource

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// number is the placeholder of a number of two digits or more: 03, 15, 100.
const number = "nn"

var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// below is what a path may have after the place that covers it.
const below = `(?:/.*)?`

// template is a text with placeholders, such as Chapter_{nn}.
type template struct {
	text  string
	holes []string // the names of its placeholders, each once, in order
	at    []string // the same, as often as they occur
	form  *regexp.Regexp
}

// templateOf reads a text with placeholders. Of what it is matched with, the end may be
// rest; a slash at its own end does not count there.
func templateOf(text, rest string) (_ *template, err error) {
	t := &template{text: text}
	form, end := "", 0
	text = strings.TrimSuffix(text, "/")
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		t.at = append(t.at, name)
		if !slices.Contains(t.holes, name) {
			t.holes = append(t.holes, name)
		}
		form += regexp.QuoteMeta(text[end:at[0]]) + hole(name)
		end = at[1]
	}
	if strings.ContainsAny(placeholder.ReplaceAllString(text, ""), "{}") {
		return nil, fmt.Errorf("a brace that is no placeholder like {nn}")
	}
	if t.form, err = regexp.Compile(`^` + form + regexp.QuoteMeta(text[end:]) + rest + `$`); err != nil {
		return nil, fmt.Errorf("too many placeholders")
	}
	return t, nil
}

// hole is what may stand in the place of a placeholder. Ids are ASCII: what looks alike
// is the same one.
func hole(name string) string {
	if name == number {
		return `(0[0-9]|[1-9][0-9]+)`
	}
	return `([0-9A-Za-z][0-9A-Za-z_.-]*)`
}

// fits reports whether a value may stand in the place of a placeholder.
func fits(name, value string) bool {
	return regexp.MustCompile(`^` + hole(name) + `$`).MatchString(value)
}

// fill puts values in the places of the placeholders.
func (t *template) fill(values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(t.text, func(s string) string { return values[s[1:len(s)-1]] })
}

// match finds the values with which the template matches a text. One placeholder has
// one value.
func (t *template) match(text string) (map[string]string, bool) {
	found := t.form.FindStringSubmatch(text)
	if found == nil {
		return nil, false
	}
	values := map[string]string{}
	for i, name := range t.at {
		value := found[i+1]
		if before, ok := values[name]; ok && before != value {
			return nil, false
		}
		values[name] = value
	}
	return values, true
}

// padded is the number that a text spells, with two digits at least.
func padded(text string) (string, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return fmt.Sprintf("%02d", n), err == nil
}
