package hook

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// A file counts as seen if the host reported a text that contains the whole file. Nothing else
// proves it: tools cut long texts, and the output of a shell is unknown.

// maxShown is the length of command output that Claude Code shows completely. It shows only the
// beginning of longer output, and other hosts may do the same.
const maxShown = 30_000

// reads notes the files that a command may show.
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

// showed reports whether a finished call showed the whole file. If the host does not report the
// output, the tool's arguments decide.
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

// plain removes details that hosts do not preserve: line ends and invalid bytes. If numbered is
// set, it also removes the line numbers of cat -n and nl.
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
