package config

import "strings"

// withoutComments removes the words of the comment lines from the text of a file, and keeps
// every position. Most of a file made by init is such lines, and the lexer reads them slowly. A
// text in which a line that begins with # may belong to a value is returned unchanged.
func withoutComments(text string) string {
	if strings.ContainsAny(text, "\r\\") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) / 4)
	for line := range strings.Lines(text) {
		content := strings.TrimLeft(line, " ")
		if strings.HasPrefix(content, "#") {
			b.WriteString(line[:len(line)-len(content)+1])
			if strings.HasSuffix(line, "\n") {
				b.WriteByte('\n')
			}
			continue
		}
		single, double := strings.Count(line, "'"), strings.Count(line, `"`)
		if strings.ContainsAny(line, "|>") || single%2 == 1 || double%2 == 1 || single > 0 && double > 0 {
			return text // the value may continue on the next lines
		}
		b.WriteString(line)
	}
	return b.String()
}
