package mcpserver

import (
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"lockkeeper"
)

// legible refuses arguments with text that is none: reading them puts a replacement
// character in its place, and a file would hold something else than was sent.
func legible(arguments json.RawMessage) error {
	if utf8.Valid(arguments) && !hasHalfPair(arguments) {
		return nil
	}
	return &lockkeeper.InputError{Field: "arguments", Reason: "there is text in them that is not Unicode: a byte that is not UTF-8, or one half of a surrogate pair",
		Next: "send content that is no text as base64"}
}

// hasHalfPair reports whether JSON escapes one half of a surrogate pair without the other.
func hasHalfPair(text []byte) bool {
	for i := 0; i < len(text)-1; i++ {
		if text[i] != '\\' {
			continue
		}
		if first := escaped(text[i:]); utf16.IsSurrogate(first) {
			if utf16.DecodeRune(first, escaped(text[i+6:])) == utf8.RuneError {
				return true
			}
			i += 6 // the second half follows
		}
		i++ // whatever is escaped
	}
	return false
}

// escaped is the code unit that a text begins with as \uXXXX; 0: it begins otherwise.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}
