package acts

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// A Where selects entries of a list by conditions, such as unit=admin/*,impact<=low. An entry must
// meet all of them. The zero Where, and "all", select everything.
type Where struct {
	text  string
	terms []term
}

type term struct{ field, op, value string }

// A Fielder is an entry that a Where can select. Field returns the values of a field, none if the
// entry has no such field.
type Fielder interface {
	Field(name string) []string
}

// The fields of conditions. Values of the fields in globs are compared as patterns, those in texts
// by what they contain, those in ratings by their order, and all others exactly.
var (
	globs   = []string{"unit", "batch", "path", "by"}
	texts   = []string{"text", "reason"}
	ratings = []string{"impact", "effort"}
)

// The fields that conditions on decisions and on kept changes can name.
var (
	DecisionFields = []string{"kind", "unit", "text", "impact", "effort", "risk", "batch", "path"}
	RescueFields   = []string{"kind", "batch", "by", "path", "reason", "text", "now"}
)

var levels = []string{string(flow.Low), string(flow.Medium), string(flow.High)}

// ParseWhere parses conditions on the given fields, separated by commas. A value with a comma is
// written in double quotes.
func ParseWhere(text string, fields []string) (Where, error) {
	w := Where{text: strings.TrimSpace(text)}
	invalid := func(reason string) (Where, error) {
		return Where{}, &lockkeeper.InputError{Field: "where", Value: text, Reason: reason,
			Next: "write all, or conditions such as " + example(fields) + "; the fields are " + strings.Join(fields, ", ")}
	}
	if w.text == "" {
		return w, nil
	}
	words := splitConditions(w.text)
	for _, word := range words {
		if word = strings.TrimSpace(word); word == "all" && len(words) == 1 {
			return w, nil
		}
		at := strings.IndexAny(word, "<>!=")
		if word == "" || at < 0 {
			return invalid("not a condition: " + word)
		}
		t := term{field: strings.ToLower(strings.TrimSpace(word[:at]))}
		for _, op := range []string{">=", "<=", "!=", "="} {
			if value, ok := strings.CutPrefix(word[at:], op); ok {
				t.op, t.value = op, strings.Trim(strings.TrimSpace(value), `"`)
				break
			}
		}
		rated := slices.Contains(ratings, t.field)
		switch {
		case !slices.Contains(fields, t.field):
			return invalid("unknown field " + t.field)
		case t.op == "" || !rated && (t.op == ">=" || t.op == "<="):
			return invalid("unknown comparison in " + word)
		case t.value == "":
			return invalid("no value in " + word)
		case rated:
			if t.value = strings.ToLower(t.value); !slices.Contains(levels, t.value) {
				return invalid(t.value + " is not low, medium or high")
			}
		case slices.Contains(globs, t.field) && !doublestar.ValidatePattern(t.value):
			return invalid("not a usable pattern: " + t.value)
		}
		w.terms = append(w.terms, t)
	}
	return w, nil
}

func example(fields []string) string {
	if slices.Contains(fields, "unit") {
		return "unit=admin/*,impact<=low"
	}
	return "batch=admin/*,now=clean"
}

// splitConditions splits at commas outside of double quotes.
func splitConditions(text string) (words []string) {
	quoted, from := false, 0
	for i, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ',' && !quoted:
			words, from = append(words, text[from:i]), i+1
		}
	}
	return append(words, text[from:])
}

func (w Where) String() string { return w.text }

// Names reports whether a condition is about a field.
func (w Where) Names(field string) bool {
	return slices.ContainsFunc(w.terms, func(t term) bool { return t.field == field })
}

// Selects reports whether an entry meets all conditions.
func (w Where) Selects(e Fielder) bool {
	return !slices.ContainsFunc(w.terms, func(t term) bool { return !t.holds(e.Field(t.field)) })
}

func (t term) holds(values []string) bool {
	if slices.Contains(ratings, t.field) {
		want := slices.Index(levels, t.value)
		return slices.ContainsFunc(values, func(v string) bool {
			switch got := slices.Index(levels, v); {
			case got < 0:
				return false // not rated
			case t.op == ">=":
				return got >= want
			case t.op == "<=":
				return got <= want
			default:
				return (got == want) == (t.op == "=")
			}
		})
	}
	found := slices.ContainsFunc(values, func(v string) bool {
		switch {
		case slices.Contains(globs, t.field):
			return flow.MatchName(t.value, v)
		case slices.Contains(texts, t.field):
			return strings.Contains(strings.ToLower(v), strings.ToLower(t.value))
		default:
			return strings.EqualFold(v, t.value)
		}
	})
	return found == (t.op == "=")
}
