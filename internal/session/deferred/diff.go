package deferred

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
)

// diff is a unified diff of one file.
type diff struct {
	was, is        string // the file, as git names it on either side; empty: it does not say
	create, remove bool
	hunks          []hunk
}

// hunk replaces lines, each with its end. at is the number of the first, from 1.
type hunk struct {
	at       int
	old, new []string
}

var hunkHead = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

func bad(reason string) error {
	return &lockkeeper.InputError{Field: "patch", Reason: reason, Next: "give a unified diff of this one file, as git diff PATH makes it, or its whole new content with --whole"}
}

// parseDiff reads a unified diff.
func parseDiff(text string) (d diff, err error) {
	lines := slices.Collect(strings.Lines(text))
	files := 0
	for i := 0; i < len(lines); {
		line := strings.TrimRight(lines[i], "\r\n")
		switch {
		case strings.HasPrefix(line, "--- "):
			files++
			d.create = strings.HasPrefix(line, "--- /dev/null")
			d.was = nameIn(line, "--- a/")
			i++
		case strings.HasPrefix(line, "+++ "):
			d.remove = strings.HasPrefix(line, "+++ /dev/null")
			d.is = nameIn(line, "+++ b/")
			i++
		case strings.HasPrefix(line, "@@ "):
			var h hunk
			if h, i, err = parseHunk(lines, i); err != nil {
				return d, err
			}
			d.hunks = append(d.hunks, h)
		default:
			i++ // what git says of the file
		}
	}
	switch {
	case len(d.hunks) == 0:
		return d, bad("it has no hunk")
	case files > 1:
		return d, bad(fmt.Sprintf("it changes %d files", files))
	}
	return d, nil
}

// nameIn is the name in a line of git's that begins so. One with spaces ends with a tab.
func nameIn(line, begin string) string {
	name, ok := strings.CutPrefix(line, begin)
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, "\t")
}

// isOf reports whether the diff can be one of a file: that git does not name another. The
// root of the codebase may lie below that of the repository, or above it.
func (d diff) isOf(path string) bool {
	for _, name := range []string{d.was, d.is} {
		if name != "" && name != path && !strings.HasSuffix(name, "/"+path) && !strings.HasSuffix(path, "/"+name) {
			return false
		}
	}
	return true
}

func parseHunk(lines []string, i int) (h hunk, next int, err error) {
	head := hunkHead.FindStringSubmatch(lines[i])
	if head == nil {
		return h, i, bad(fmt.Sprintf("line %d begins a hunk and is not understood", i+1))
	}
	count := func(s string) int {
		if s == "" {
			return 1
		}
		n, _ := strconv.Atoi(s) // digits
		return n
	}
	h.at, _ = strconv.Atoi(head[1])
	was, is := count(head[2]), count(head[3])
	for i++; i < len(lines) && (len(h.old) < was || len(h.new) < is || strings.HasPrefix(lines[i], `\`)); i++ {
		rest := lines[i][1:]
		switch lines[i][0] {
		case ' ':
			h.old, h.new = append(h.old, rest), append(h.new, rest)
		case '\n': // an empty line of context whose space an editor took away
			h.old, h.new = append(h.old, "\n"), append(h.new, "\n")
		case '-':
			h.old = append(h.old, rest)
		case '+':
			h.new = append(h.new, rest)
		case '\\':
			h.unended(lines[i-1])
		default:
			return h, i, bad(fmt.Sprintf("line %d is no line of a hunk", i+1))
		}
	}
	if len(h.old) != was || len(h.new) != is {
		return h, i, bad("its last hunk is cut off")
	}
	return h, i, nil
}

// unended takes the end off the line before a note that there is none.
func (h *hunk) unended(before string) {
	cut := func(list []string) {
		if len(list) > 0 {
			list[len(list)-1] = strings.TrimSuffix(list[len(list)-1], "\n")
		}
	}
	if before[0] != '+' {
		cut(h.old)
	}
	if before[0] != '-' {
		cut(h.new)
	}
}

// apply makes the new content of an old one; not ok: the base does not match. Only where the
// content is exactly what the diff was made from do its line numbers say anything; otherwise
// the lines of a hunk must be in one place alone. What removes a file must know all of it.
func (d diff) apply(content string, exact bool) (string, bool) {
	lines := slices.Collect(strings.Lines(content))
	var out []string
	done, shift := 0, 0
	for _, h := range d.hunks {
		want := h.at - 1 + shift
		if len(h.old) == 0 {
			want++ // it names the line before
		}
		if !exact {
			want = nowhere
		}
		at, ok := place(lines, h.old, want, done)
		if !ok {
			return "", false
		}
		out = append(append(out, lines[done:at]...), h.new...)
		shift += at - want
		done = at + len(h.old)
	}
	out = append(out, lines[done:]...)
	return strings.Join(out, ""), !d.remove || len(out) == 0
}

// nowhere is no line.
const nowhere = -1

// place finds where lines are: where they should be, or else in the one place after from.
// No lines are in every place.
func place(lines, old []string, want, from int) (at int, ok bool) {
	fits := func(i int) bool {
		return i >= from && i+len(old) <= len(lines) && slices.Equal(lines[i:i+len(old)], old)
	}
	if fits(want) {
		return want, true
	}
	for i := from; i+len(old) <= len(lines); i++ {
		if fits(i) {
			if ok {
				return 0, false // in two
			}
			at, ok = i, true
		}
	}
	return at, ok
}
