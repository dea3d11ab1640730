package shellword

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote returns one word that any POSIX shell reads as s, unquoted if s needs no quotes.
func Quote(s string) string {
	if isPlain(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
}

// Printable does the same as Quote for text shown to people and agents. It writes unprintable
// characters as escape sequences, which bash, zsh and ksh read.
func Printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Quote(s)
	}
	escaped := strconv.Quote(s)
	return "$'" + strings.NewReplacer(`\\`, `\\`, `\"`, `"`, "'", `\'`).Replace(escaped[1:len(escaped)-1]) + "'"
}

// isPlain reports whether a shell reads s unchanged at any position of a command. A word with =
// may be an assignment unless it is an option.
func isPlain(s string) bool {
	option := strings.HasPrefix(s, "-")
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case r == '=':
			return !option
		case r == utf8.RuneError:
			return true
		}
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+@%:,", r)
	})
}
