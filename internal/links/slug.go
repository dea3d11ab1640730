package links

import (
	"strconv"
	"strings"
	"unicode"
)

// anchors are the ids that a document has, as GitHub makes them.
type anchors struct {
	slugs map[string]int  // of headings: how often each was wanted again
	ids   map[string]bool // that are written out
}

// heading adds the id of a heading with this text. The second of a name gets -1.
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

// id adds one that is written out.
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

// slugOf is GitHub's id of a heading: in lower case, spaces as dashes, and nothing
// else but letters, marks, digits, dashes and what connects words.
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

// cutID takes an explicit id, {#like-this}, off the end of a heading.
func cutID(text string) (rest, id string) {
	trimmed := strings.TrimRight(text, " ")
	begin := strings.LastIndex(trimmed, "{#")
	if begin < 0 || !strings.HasSuffix(trimmed, "}") {
		return text, ""
	}
	id, _, _ = strings.Cut(trimmed[begin+2:len(trimmed)-1], " ") // classes may follow
	return strings.TrimRight(trimmed[:begin], " "), id
}
