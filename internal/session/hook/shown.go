package hook

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// A file counts as seen if the host reported a text that contains the whole file. Nothing else
// is a proof: tools cut long texts, and the output of a shell is unknown.

// maxShown is how much of what a command prints Claude Code shows; of more it shows only the
// beginning, as others may.
const maxShown = 30_000

// reads takes in files that a command may show.
func (r *reader) reads(operands []string) {
	for _, f := range operands {
		if f == "" {
			continue
		}
		if file := absolute(r.dir, f); isThere(file) {
			r.plan.Reads = append(r.plan.Reads, Touch{File: file})
		}
	}
}

func isThere(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// textsOf lists all texts in an answer of a tool.
func textsOf(answer json.RawMessage) []string {
	var value any
	if json.Unmarshal(answer, &value) != nil {
		return nil
	}
	var texts []string
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, in := range v {
				walk(in)
			}
		case map[string]any:
			for _, in := range v {
				walk(in)
			}
		}
	}
	walk(value)
	return texts
}

// showed reports whether a call that has ended showed all of a file. Where the host does not
// say what it showed, it is what the tool was asked for.
func (c Call) showed(t Touch, content []byte) bool {
	switch {
	case c.Command == "" && c.Shown == nil:
		return t.Whole
	case content == nil || c.Cut || c.Background:
		return false
	}
	want := "\n" + strings.Trim(plain(string(content), false), "\n") + "\n"
	return slices.ContainsFunc(c.Shown, func(text string) bool {
		if c.Command != "" && len(text) > maxShown {
			return false
		}
		return strings.Contains("\n"+plain(text, false)+"\n", want) || strings.Contains("\n"+plain(text, true)+"\n", want)
	})
}

// plain is a text without what gets lost on its way: the ends of lines, bytes that are no
// text, and, where it is numbered, the numbers that cat -n and nl put before lines.
func plain(text string, numbered bool) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(strings.TrimPrefix(text, "\ufeff"), ""), "\ufffd", "")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if numbered {
			if number, rest, is := strings.Cut(line, "\t"); is && strings.Trim(number, " 0123456789") == "" {
				line = rest
			}
		}
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	return strings.Join(lines, "\n")
}
