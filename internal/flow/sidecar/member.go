package sidecar

import (
	"bytes"
	"iter"
)

// part is a member of an object, as it is spelled.
type part struct {
	name, value []byte
	offset      int64 // of the name
}

// members are those of an object, which has to be valid JSON: it only looks where they
// begin and end.
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

// blank is how much space a text begins with.
func blank(text []byte) int { return len(text) - len(bytes.TrimLeft(text, " \t\r\n")) }

// extent is how long the value is that a text begins with.
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
				return at // behind a number or a word
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
