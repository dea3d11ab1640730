package deferred

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"lockkeeper"
)

// A diff is a unified diff of one file.
type diff struct {
	was, is        string // names of the file on both sides; empty: not given
	create, remove bool
	hunks          []hunk
}

// A hunk replaces lines, each with its line ending. at is the number of the first line, from 1.
type hunk struct {
	at       int
	old, new []string
}

func bad(reason string) error {
	return &lockkeeper.InputError{Field: "patch", Reason: reason, Next: "give a unified diff of this one file, as git diff PATH prints it, or its whole new content with --whole"}
}

// parseDiff parses a unified diff. It reads the file header itself, because gitdiff requires
// one and keeps only one of the two names of a plain diff.
func parseDiff(text string) (d diff, err error) {
	header, hunks, found := strings.Cut("\n"+text, "\n@@ ")
	if !found {
		return d, bad("it has no hunk")
	}
	headers := 0
	for line := range strings.Lines(header) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "--- "):
			headers++
			d.create, d.was = strings.HasPrefix(line, "--- /dev/null"), nameIn(line, "--- a/")
		case strings.HasPrefix(line, "+++ "):
			d.remove, d.is = strings.HasPrefix(line, "+++ /dev/null"), nameIn(line, "+++ b/")
		}
	}
	files, _, err := gitdiff.Parse(strings.NewReader("--- a\n+++ b\n@@ " + hunks))
	switch {
	case err != nil:
		return d, bad("a hunk is invalid: " + strings.TrimPrefix(err.Error(), "gitdiff: "))
	case len(files) == 0:
		return d, bad("the header of a hunk is invalid")
	case len(files) > 1 || headers > 1:
		return d, bad(fmt.Sprintf("it changes %d files", max(len(files), headers)))
	}
	for _, f := range files[0].TextFragments {
		h := hunk{at: int(f.OldPosition)}
		for _, l := range f.Lines {
			if l.Old() {
				h.old = append(h.old, l.Line)
			}
			if l.New() {
				h.new = append(h.new, l.Line)
			}
		}
		d.hunks = append(d.hunks, h)
	}
	return d, nil
}

// nameIn returns the file name in a header line with this prefix. If a name has spaces, git ends
// it with a tab.
func nameIn(line, begin string) string {
	name, ok := strings.CutPrefix(line, begin)
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, "\t")
}

// isOf reports whether the diff may be of a file: it names no other file. The root of the
// codebase may be below or above that of the repository.
func (d diff) isOf(path string) bool {
	for _, name := range []string{d.was, d.is} {
		if name != "" && name != path && !strings.HasSuffix(name, "/"+path) && !strings.HasSuffix(path, "/"+name) {
			return false
		}
	}
	return true
}

// names lists the file names in the header of the diff.
func (d diff) names() string {
	if d.was == "" || d.was == d.is {
		return d.is
	}
	return d.was + " and " + d.is
}

// apply returns the content after the diff, and false if the content does not match. Line
// numbers count only if exact is set, which means that the content is the base of the diff.
// Otherwise the lines of each hunk must occur in exactly one place. A removal must match the
// whole file.
func (d diff) apply(content string, exact bool) (string, bool) {
	lines := slices.Collect(strings.Lines(content))
	var out []string
	done, shift := 0, 0
	for _, h := range d.hunks {
		want := h.at - 1 + shift
		if len(h.old) == 0 {
			want++ // after an insertion git gives the number of the line before
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

// nowhere stands for an unknown line.
const nowhere = -1

// place returns the index at which the lines old begin: the index want if they are there, or
// otherwise the only match at or after the index from. An empty list of lines matches everywhere.
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
				return 0, false // the lines occur twice
			}
			at, ok = i, true
		}
	}
	return at, ok
}
