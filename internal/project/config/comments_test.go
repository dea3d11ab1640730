package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
	"pgregory.net/rapid"
)

// A token that is no comment, with its place.
type meaning struct {
	kind         token.Type
	value        string
	line, column int
}

func meanings(text string) (list []meaning) {
	for _, t := range lexer.Tokenize(text) {
		if t.Type != token.CommentType {
			list = append(list, meaning{t.Type, t.Value, t.Position.Line, t.Position.Column})
		}
	}
	return list
}

// The words of comments can be removed before the file is read: all other tokens stay the same, at
// the same places. Comments within a value are no comments.
func TestCommentsMeanNothing(t *testing.T) {
	for text, most := range map[string]int{
		Sample():                        2000,
		"a: 1\n  # two\n\n#three":       14,
		"a: |\n  one\n  # two\n":        100,
		"a: >-\n  # two\n":              100,
		"a: 'one\n  # two'\n":           100,
		"a: \"one\\\"\n  # two\"\n":     100,
		"a: [\"it's\", 'one\n# two']\n": 100,
		"# one\ra: 1\n":                 100,
	} {
		short := withoutComments(text)
		if len(short) > most || most == 100 && short != text {
			t.Errorf("%q became %q", text, short)
		}
		if !slices.Equal(meanings(short), meanings(text)) {
			t.Errorf("%q became %q, with another meaning", text, short)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"a", ": ", ":", "#", " #", "# b", "\n", "\n  ", "\n    ", "'", "''", `"`, `\`, `\"`, "|", ">", "|-", "- ", "[", "]", ", ", "{", "}", "\r\n", "\t", "1", "é", "&x", "*x", "---", "a: b\n", "a: 'b'\n", "  a:\n", "a: [b, c]\n", "# c\n"})
		text := strings.Join(rapid.SliceOfN(part, 0, 24).Draw(t, "text"), "")
		if short := withoutComments(text); !slices.Equal(meanings(short), meanings(text)) {
			t.Fatalf("%q became %q\n%v\n%v", text, short, meanings(text), meanings(short))
		}
	})
}
