package config

import (
	"strings"
	"unicode"
)

// withoutComments removes the words of the comment lines from the text of a file, and keeps
// the position of everything else. Most of a file made by init is such lines, and the lexer
// reads them slowly. A text in which a line that begins with # may belong to a value is returned
// unchanged.
func withoutComments(text string) string {
	if strings.ContainsAny(text, "\r\\") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) / 4)
	after := false // whether the line follows a comment line, and thus no value
	for line := range strings.Lines(text) {
		content := strings.TrimLeft(line, " ")
		if strings.HasPrefix(content, "#") {
			if !after {
				b.WriteString(line[:len(line)-len(content)+1])
			}
			if strings.HasSuffix(line, "\n") {
				b.WriteByte('\n')
			}
			after = true
			continue
		}
		if !endsValue(content) {
			return text
		}
		after = after && content == "\n"
		b.WriteString(line)
	}
	return b.String()
}

// endsValue reports whether a line certainly ends the texts that it begins: it begins no block,
// and has no quotes but those around the one value of a key or a list entry.
func endsValue(line string) bool {
	if strings.ContainsAny(line, "|>") {
		return false
	}
	open := strings.IndexAny(line, `'"`)
	if open < 0 {
		return true
	}
	before, quoted := line[:open], strings.TrimRight(line[open:], " \n")
	if len(quoted) < 2 || strings.IndexAny(quoted[1:], `'"`) != len(quoted)-2 || quoted[0] != quoted[len(quoted)-1] {
		return false
	}
	key, isKey := strings.CutSuffix(strings.TrimRight(before, " "), ":")
	isWord := !strings.ContainsFunc(key, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.HasSuffix(before, " ") && (isKey && isWord || key == "-")
}
