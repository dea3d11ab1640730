package web

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/view"
)

// A fileDiff is the diff of one file, split into lines.
type fileDiff struct {
	view.FileDiff
	Version   string // identifies the diff, for the files that a person marked as viewed
	Lines     []diffLine
	Left      int
	Unsent    int                    // comments that no agent has yet
	Elsewhere []progress.LineComment // comments on lines that the diff does not show
}

// Typeable reports whether a form can name the file: a path with control characters is not the same after a browser
// has sent it.
func (f fileDiff) Typeable() bool {
	return len(f.Lines) > 0 && !strings.ContainsFunc(f.Path, unicode.IsControl)
}

func diffOf(d *view.Diff) (list []fileDiff) {
	if d == nil {
		return nil
	}
	for _, f := range d.Files {
		lines, left := linesOf(f.Text)
		sum := sha256.Sum256([]byte(f.Path + "\x00" + f.Text))
		list = append(list, fileDiff{FileDiff: f, Version: hex.EncodeToString(sum[:8]), Lines: lines, Left: left})
	}
	return list
}

// commented returns the diff of a batch with the comments on its lines.
func commented(batch view.BatchDetail) []fileDiff {
	files := diffOf(batch.Diff)
	for _, c := range batch.Comments {
		at := slices.IndexFunc(files, func(f fileDiff) bool { return f.Path == c.Path })
		if at >= 0 {
			files[at].comment(c)
		}
	}
	return files
}

// unsent counts the comments on the lines of a diff under review that no agent has yet.
func unsent(d *view.Decision) (n int) {
	if d.Review == nil {
		return 0
	}
	for _, c := range d.Review.Comments {
		if c.Sent == nil {
			n++
		}
	}
	return n
}

// comment adds a comment to its line.
func (f *fileDiff) comment(c progress.LineComment) {
	if c.Sent == nil {
		f.Unsent++
	}
	for i := range f.Lines {
		l := &f.Lines[i]
		number := l.New
		if c.Old {
			number = l.Old
		}
		if l.Kind != "hunk" && number == c.Line && l.Text == c.Quote {
			l.Comments = append(l.Comments, c)
			return
		}
	}
	f.Elsewhere = append(f.Elsewhere, c) // the file changed since, or the line is not near a change
}

// A diffLine is one line of a diff with its numbers in both files.
type diffLine struct {
	Kind     string // add, del, hunk; empty: unchanged
	Old, New int    // the number in the old and in the new file; 0: the line is not in this file
	Sign     string
	Text     string
	Comments []progress.LineComment // comments on the line
}

// linesShown limits how many lines of one file a page shows.
const linesShown = 4_000

// hunk matches the first line of a hunk, with its start in both files.
var hunk = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)`)

// linesOf parses the unified diff of one file, up to the limit, and returns how many lines it left out.
func linesOf(unified string) (list []diffLine, left int) {
	var was, is int // numbers of the next line
	inHunk := false
	for line := range strings.Lines(unified) {
		line = strings.TrimSuffix(line, "\n")
		if begins := hunk.FindStringSubmatch(line); begins != nil {
			was, _ = strconv.Atoi(begins[1])
			is, _ = strconv.Atoi(begins[2])
			inHunk = true
			list = append(list, diffLine{Kind: "hunk", Text: line})
			continue
		}
		if !inHunk { // the header with the file names
			continue
		}
		if len(list) >= linesShown {
			left++
			continue
		}
		sign, rest := " ", line
		if line != "" {
			sign, rest = line[:1], line[1:]
		}
		switch sign {
		case "+":
			list = append(list, diffLine{Kind: "add", New: is, Sign: "+", Text: rest})
			is++
		case "-":
			list = append(list, diffLine{Kind: "del", Old: was, Sign: "−", Text: rest})
			was++
		case `\`:
			list = append(list, diffLine{Kind: "hunk", Text: rest})
		default:
			list = append(list, diffLine{Old: was, New: is, Text: rest})
			was++
			is++
		}
	}
	return list, left
}
