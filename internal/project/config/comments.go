package config

import (
	"slices"
	"strings"
	"unicode"
)

// withoutComments removes the words of the comment lines from the text of a file, and keeps
// the position of everything else. Most of a file made by init is such lines, and the lexer
// reads them slowly. If a line has more than a key and a plain value, the text is returned
// unchanged: a line that begins with # could belong to a value.
func withoutComments(text string) string {
	var b strings.Builder
	b.Grow(len(text) / 4)
	after := false // whether the line follows a comment line
	for line := range strings.Lines(text) {
		content := strings.TrimLeft(line, " ")
		if strings.HasPrefix(content, "#") && !strings.Contains(content, "\r") {
			if !after {
				b.WriteString(line[:len(line)-len(content)+1])
			}
			if strings.HasSuffix(line, "\n") {
				b.WriteByte('\n')
			}
			after = true
			continue
		}
		if !isPlain(strings.TrimRight(content, " \n")) {
			return text
		}
		after = after && content == "\n"
		b.WriteString(line)
	}
	return b.String()
}

// isPlain reports whether a line is empty, or a key without a value, or with one word, one text
// in quotes or one list of words.
func isPlain(line string) bool {
	key, value, found := strings.Cut(line, ": ")
	if !found {
		key = strings.TrimSuffix(line, ":")
		found = key != line
	}
	value = strings.TrimLeft(value, " ")
	switch {
	case line == "" || found && isWord(key) && (value == "" || isWord(value)):
		return true
	case !found || !isWord(key) || len(value) < 2:
		return false
	}
	inner, first, last := value[1:len(value)-1], value[0], value[len(value)-1]
	if first == '[' && last == ']' {
		return !slices.ContainsFunc(strings.Split(inner, ", "), func(entry string) bool { return !isWord(entry) })
	}
	return first == last && (first == '\'' || first == '"') && !strings.ContainsAny(inner, `\'"`)
}

// isWord reports whether a text has only letters, digits and signs that mean nothing in YAML.
func isWord(text string) bool {
	return text != "" && text[0] != '-' && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./", r)
	})
}
