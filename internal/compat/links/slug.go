package links

import (
	"strconv"
	"strings"
	"unicode"
)

// anchors are the ids of a document, as GitHub makes them.
type anchors struct {
	slugs map[string]int  // of headings: the number of repetitions
	ids   map[string]bool // explicit ids
}

// heading adds the id of a heading. A repeated id gets the suffix -1.
func (a *anchors) heading(text string) {
	if a.slugs == nil {
		a.slugs = map[string]int{}
	}
	slug := slugOf(text)
	unique := slug
	for {
		if _, taken := a.slugs[unique]; !taken {
			break
		}
		a.slugs[slug]++
		unique = slug + "-" + strconv.Itoa(a.slugs[slug])
	}
	a.slugs[unique] = 0
}

// id adds an explicit id.
func (a *anchors) id(id string) {
	if id == "" {
		return
	}
	if a.ids == nil {
		a.ids = map[string]bool{}
	}
	a.ids[id] = true
}

func (a *anchors) has(id string) bool {
	_, ok := a.slugs[id]
	return ok || a.ids[id]
}

// slugOf returns GitHub's id of a heading: lower case, spaces as dashes, and only letters,
// marks, digits, dashes and connectors.
func slugOf(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.In(r, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// cutID splits an explicit id, {#like-this}, from the end of a heading.
func cutID(text string) (rest, id string) {
	trimmed := strings.TrimRight(text, " ")
	begin := strings.LastIndex(trimmed, "{#")
	if begin < 0 || !strings.HasSuffix(trimmed, "}") {
		return text, ""
	}
	id, _, _ = strings.Cut(trimmed[begin+2:len(trimmed)-1], " ") // classes may follow
	return strings.TrimRight(trimmed[:begin], " "), id
}
