package git

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"lockkeeper"
	"lockkeeper/internal/git/gitcmd"
)

// A Trailer is a line at the end of a commit message, for programs.
type Trailer struct{ Key, Value string }

func (t Trailer) line() string { return t.Key + ": " + t.Value }

const (
	maxSubject = 72       // characters
	maxBody    = 16 << 10 // bytes
	maxTrailer = 1 << 10  // bytes
)

// message returns the message of a commit. A model may have written subject and body, so message
// removes text from them that git or a terminal would interpret. The caller writes the trailers,
// and invalid ones are an error. A message that an author wrote stays as it is.
func message(c Commit) (string, error) {
	if c.Message != "" {
		return c.Message, nil
	}
	paragraphs := []string{subject(c.Subject)}
	if body := body(c.Body, c.Trailers); body != "" {
		paragraphs = append(paragraphs, body)
	}
	var lines []string
	for _, t := range c.Trailers {
		if err := t.check(); err != nil {
			return "", err
		}
		lines = append(lines, t.line())
	}
	if len(lines) > 0 {
		paragraphs = append(paragraphs, strings.Join(lines, "\n"))
	}
	return strings.Join(paragraphs, "\n\n") + "\n", nil
}

func (t Trailer) check() error {
	isKey := func(c rune) bool { return c == '-' || c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c)) }
	wrong := func(reason string) error {
		return &lockkeeper.InputError{Field: "trailer " + t.Key, Value: t.Value, Reason: reason}
	}
	switch {
	case t.Key == "" || strings.HasPrefix(t.Key, "-") || strings.ContainsFunc(t.Key, func(c rune) bool { return !isKey(c) }):
		return wrong("its key may have only letters, digits and dashes")
	case t.Value == "" || t.Value != strings.TrimSpace(t.Value) || t.Value != gitcmd.Printable(t.Value):
		return wrong("its value is empty, not UTF-8, has space around it, or a newline or another control character in it")
	case len(t.line()) > maxTrailer:
		return wrong(fmt.Sprintf("it is longer than %d bytes", maxTrailer))
	}
	return nil
}

// markers at the beginning of a subject make git rebase --autosquash act, or turn the line
// into a comment when a person edits the message.
var markers = []string{"#", "fixup!", "squash!", "amend!"}

// subject returns the first line that is not empty.
func subject(text string) string {
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "\n")) {
		line = strings.Join(strings.Fields(gitcmd.Printable(line)), " ")
		for i := 0; i < len(markers); i++ {
			if rest, ok := strings.CutPrefix(line, markers[i]); ok {
				line, i = strings.TrimSpace(rest), -1
			}
		}
		if runes := []rune(line); len(runes) > maxSubject {
			line = strings.TrimSpace(string(runes[:maxSubject-1])) + "…"
		}
		if line != "" {
			return line
		}
	}
	return "Changes"
}

// body returns a text of several lines. It indents lines that git would interpret:
// comments, the end of a message in a mail, and trailers.
func body(text string, trailers []Trailer) string {
	if len(text) > maxBody {
		text = text[:maxBody] + "…"
	}
	means := func(line string) bool {
		isTrailer := func(t Trailer) bool {
			key, _, found := strings.Cut(line, ":")
			return found && strings.EqualFold(strings.TrimSpace(key), t.Key)
		}
		isMark := func(mark string) bool { return strings.HasPrefix(line, mark) }
		return slices.ContainsFunc([]string{"#", "---", "diff -", "Index: "}, isMark) || slices.ContainsFunc(trailers, isTrailer)
	}
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		line = strings.TrimRightFunc(gitcmd.Printable(line), unicode.IsSpace)
		if means(line) {
			line = " " + line
		}
		lines = append(lines, line)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
