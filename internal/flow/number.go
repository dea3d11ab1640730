package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Numbered gives every possible item a unique id.
func (e Extract) Numbered() Extract {
	items := slices.Clone(e.Items)
	for i := range items {
		items[i].ID = fmt.Sprintf("i%d", i+1)
	}
	return Extract{items}
}

// Slugged gives every topic a unique slug from its prompt.
func (a Analysis) Slugged() Analysis {
	a.Topics = slices.Clone(a.Topics)
	taken := map[string]bool{}
	for i := range a.Topics {
		base := slug(a.Topics[i].Prompt)
		name := base
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[name], a.Topics[i].Slug = true, name
	}
	return a
}

// slug returns the first words of a text as part of a file name.
func slug(prompt string) string {
	const enough = 60
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(strings.ToLower(prompt), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if b.Len()+1+len(word) > enough {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteString(word)
	}
	if b.Len() == 0 {
		return "topic"
	}
	return b.String()
}
