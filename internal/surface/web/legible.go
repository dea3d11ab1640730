package web

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// legible makes every character visible that changes how others are read: control characters, bidirectional
// controls and characters without width. It processes the finished page, so no template can forget it. In the
// value of a field, such a character is written as a character reference, so that the browser sends it back
// unchanged.
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
			b.WriteRune(r) // invalid UTF-8 becomes U+FFFD
		case place == inValue:
			fmt.Fprintf(&b, "&#x%X;", r)
		default:
			b.WriteString(visible(r))
		}
	}
	return b.String()
}

// A place is the syntactic position of a character in a page. html/template escapes these delimiters elsewhere,
// so they are unambiguous.
type place int

const (
	text place = iota
	inTag
	inQuotes
	opening // in value=, before its quote
	inValue
)

// after returns the place after the character r. The page continues with rest.
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

// isOdd reports whether a character is invisible or changes how others are read. Line ends and tabs are not odd.
func isOdd(r rune) bool {
	if r < 0x7F { // fast path for ASCII
		return r < ' ' && r != '\n' && r != '\t'
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) || unicode.Is(unicode.Bidi_Control, r)
}

// visible returns a visible form of a character.
func visible(r rune) string { return fmt.Sprintf("⟨U+%04X⟩", r) }

// oneLine returns a name with its line ends made visible, too.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return strings.NewReplacer("\n", visible('\n'), "\t", visible('\t')).Replace(s)
}
