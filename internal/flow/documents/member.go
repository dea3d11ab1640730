package documents

import (
	"bytes"
	"iter"
)

// A part is the text of one member of an object.
type part struct {
	name, value []byte
	offset      int64 // the offset of the name
}

// members lists the members of an object, which must be valid JSON.
func members(object []byte) iter.Seq[part] {
	return func(yield func(part) bool) {
		at := bytes.IndexByte(object, '{') + 1
		for {
			at += blank(object[at:])
			if object[at] == '}' {
				return
			}
			m := part{offset: int64(at)}
			m.name = object[at : at+extent(object[at:])]
			at += len(m.name)
			at += blank(object[at:]) + len(":")
			at += blank(object[at:])
			m.value = object[at : at+extent(object[at:])]
			at += len(m.value)
			if !yield(m) {
				return
			}
			if at += blank(object[at:]); object[at] == ',' {
				at++
			}
		}
	}
}

// blank counts the leading white space of a text.
func blank(text []byte) int { return len(text) - len(bytes.TrimLeft(text, " \t\r\n")) }

// extent returns the length of the value at the beginning of a text.
func extent(text []byte) int {
	depth := 0
	for at := 0; ; at++ {
		switch text[at] {
		case '"':
			for at++; text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
			if depth == 0 {
				return at + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at // after a number or a word
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return at
			}
		}
	}
}
