package resource

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

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
