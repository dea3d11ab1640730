package web

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// legible is a page in which every character can be seen that changes how others are
// read: controls, directions of writing, what has no width. It looks at the finished
// page, so no template can forget it. In the value of a field such a character stays what
// it is, spelled as a reference: it is sent back as it came.
func legible(page string) string {
	if utf8.ValidString(page) && !strings.ContainsFunc(page, isOdd) {
		return page
	}
	var b strings.Builder
	b.Grow(len(page) + 64)
	place := text
	for i, r := range page {
		place = place.after(page[i:], r)
		switch {
		case !isOdd(r):
			b.WriteRune(r) // of what is no character: the sign for that
		case place == inValue:
			fmt.Fprintf(&b, "&#x%X;", r)
		default:
			b.WriteString(visible(r))
		}
	}
	return b.String()
}

// place is where in a page a character stands. In what html/template writes the signs
// that it is told by stand for nothing else.
type place int

const (
	text place = iota
	inTag
	inQuotes
	opening // the name of a field's value, up to its quote
	inValue
)

// after is the place of a character that comes next, with the page from there on.
func (p place) after(rest string, r rune) place {
	const field = `value="`
	switch {
	case p == text && r == '<':
		return inTag
	case p == inTag && r == '>':
		return text
	case p == inTag && strings.HasPrefix(rest, field):
		return opening
	case p == opening && r == '"':
		return inValue
	case p == inTag && r == '"':
		return inQuotes
	case (p == inQuotes || p == inValue) && r == '"':
		return inTag
	}
	return p
}

// isOdd reports whether a character cannot be seen as itself. Lines may end, and be
// indented.
func isOdd(r rune) bool {
	if r < 0x7F { // nearly all of a page
		return r < ' ' && r != '\n' && r != '\t'
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) || unicode.Is(unicode.Bidi_Control, r)
}

// visible is a sign for a character that has none.
func visible(r rune) string { return fmt.Sprintf("⟨U+%04X⟩", r) }

// oneLine is a name in which even the end of a line can be seen.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return strings.NewReplacer("\n", visible('\n'), "\t", visible('\t')).Replace(s)
}
