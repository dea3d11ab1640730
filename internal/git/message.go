package git

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"lockkeeper"
)

// Trailer is a line at the end of a commit's message, for programs to read.
type Trailer struct{ Key, Value string }

func (t Trailer) line() string { return t.Key + ": " + t.Value }

const (
	maxSubject = 72       // characters
	maxBody    = 16 << 10 // bytes
	maxTrailer = 1 << 10  // bytes
)

// message composes what a commit says. Subject and body may be a model's words: they
// are made fit, so that they neither pass for trailers nor for anything that git, or a
// terminal, would act upon. Trailers are the caller's, and refused when they are wrong.
func message(c Commit) (string, error) {
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
		return wrong("its key is not made of letters, digits and dashes")
	case t.Value == "" || t.Value != strings.TrimSpace(t.Value) || t.Value != printable(t.Value):
		return wrong("its value is empty, not UTF-8, has space around it, or a newline or another control character in it")
	case len(t.line()) > maxTrailer:
		return wrong(fmt.Sprintf("it is longer than %d bytes", maxTrailer))
	}
	return nil
}

// markers at the beginning of a subject make git rebase --autosquash act, or make the
// line a comment when somebody edits the message.
var markers = []string{"#", "fixup!", "squash!", "amend!"}

// subject is the first line that says something.
func subject(text string) string {
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "\n")) {
		line = strings.Join(strings.Fields(printable(line)), " ")
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

// body is a text of several lines. Those that would be read as something else are set
// in by a space: comments, what ends a message in a mail, and the trailers.
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
		line = strings.TrimRightFunc(printable(line), unicode.IsSpace)
		if means(line) {
			line = " " + line
		}
		lines = append(lines, line)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// printable leaves out what a terminal would act upon, and what nobody sees; tabs stay
// as spaces.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\t':
			return ' '
		case unicode.Is(unicode.C, c), c == '\u2028', c == '\u2029':
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
