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
	write := func(text, format string) {
		for _, r := range text {
			if isOdd(r) {
				fmt.Fprintf(&b, format, r)
			} else {
				b.WriteRune(r) // invalid UTF-8 becomes U+FFFD
			}
		}
	}
	const field = `value="` // html/template escapes quotes in text, so this is in a tag
	for rest, found := page, true; found; {
		var before, value string
		before, rest, found = strings.Cut(rest, field)
		write(before, odd)
		if found {
			value, rest, found = strings.Cut(rest, `"`)
			b.WriteString(field)
			write(value, "&#x%X;")
			b.WriteByte('"')
		}
	}
	return b.String()
}

// odd is the visible form of a character.
const odd = "⟨U+%04X⟩"

// isOdd reports whether a character is invisible or changes how others are read. Line ends and tabs are not odd.
func isOdd(r rune) bool {
	if r < 0x7F { // fast path for ASCII
		return r < ' ' && r != '\n' && r != '\t'
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) || unicode.Is(unicode.Bidi_Control, r)
}

// oneLine returns a name with its line ends made visible, too.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return strings.NewReplacer("\n", fmt.Sprintf(odd, '\n'), "\t", fmt.Sprintf(odd, '\t')).Replace(s)
}
