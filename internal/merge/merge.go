package merge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// A Result is a merged text.
type Result struct {
	Text      string     // with markers around conflicts
	Conflicts []Conflict // in the order of the text
}

// A Conflict is one place where both sides changed the same lines.
type Conflict struct {
	Line int    `json:"line"` // number of the first line in the text as it is now
	Base string `json:"base,omitempty"`
	Kept string `json:"kept"`
	Now  string `json:"now"`
}

// Counts is the number of lines that a change adds and removes.
type Counts struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// String describes a change in a few words, such as "adds 2 lines, removes 1".
func (c Counts) String() string {
	switch {
	case c.Added > 0 && c.Removed > 0:
		return "adds " + lines(c.Added) + ", removes " + fmt.Sprint(c.Removed)
	case c.Removed > 0:
		return "removes " + lines(c.Removed)
	}
	return "adds " + lines(c.Added)
}

func lines(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

// Count counts the lines that differ between two texts.
func Count(from, to string) (c Counts) {
	for _, e := range udiff.Lines(from, to) {
		c.Removed += countLines(from[e.Start:e.End])
		c.Added += countLines(e.New)
	}
	return c
}

func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// ThreeWay merges the changes from base to kept and from base to now.
func ThreeWay(base, kept, now string) Result {
	m := merger{base: base}
	mine, theirs := udiff.Lines(base, kept), udiff.Lines(base, now)
	at := 0
	for len(mine)+len(theirs) > 0 {
		start, end := len(base), 0
		for _, list := range [][]udiff.Edit{mine, theirs} {
			if len(list) > 0 && list[0].Start < start {
				start = list[0].Start
			}
		}
		end = start
		var a, b []udiff.Edit
		for grown := true; grown; { // edits that touch each other belong together
			grown = false
			for _, side := range []struct{ from, to *[]udiff.Edit }{{&mine, &a}, {&theirs, &b}} {
				for len(*side.from) > 0 && (*side.from)[0].Start <= end {
					e := (*side.from)[0]
					*side.from, *side.to = (*side.from)[1:], append(*side.to, e)
					end, grown = max(end, e.End), true
				}
			}
		}
		m.same(base[at:start])
		was, ours, is := base[start:end], apply(base, start, end, a), apply(base, start, end, b)
		switch {
		case b == nil || ours == is:
			m.take(ours, is)
		case a == nil:
			m.take(is, is)
		default:
			m.conflict(was, ours, is)
		}
		at = end
	}
	m.same(base[at:])
	return m.result()
}

// TwoWay marks every difference between two texts whose base is unknown as a conflict.
func TwoWay(kept, now string) Result {
	m := merger{unknown: true}
	at := 0
	for _, e := range udiff.Lines(now, kept) {
		m.same(now[at:e.Start])
		m.conflict("", e.New, now[e.Start:e.End])
		at = e.End
	}
	m.same(now[at:])
	return m.result()
}

// apply returns base[start:end] with the edits of one side.
func apply(base string, start, end int, edits []udiff.Edit) string {
	var text strings.Builder
	for _, e := range edits {
		text.WriteString(base[start:e.Start])
		text.WriteString(e.New)
		start = e.End
	}
	text.WriteString(base[start:end])
	return text.String()
}

// A merger collects the merged text.
type merger struct {
	base      string
	unknown   bool // there is no base
	text      strings.Builder
	line      int // lines of the present text that were passed
	conflicts []Conflict
}

func (m *merger) same(text string) { m.take(text, text) }

// take adds text to the result, in place of a part of the present text.
func (m *merger) take(text, now string) {
	m.text.WriteString(text)
	m.line += countLines(now)
}

// The markers of conflicts begin lines of the merged text, as in git.
const (
	markNow  = "<<<<<<< the file as it is now"
	markBase = "||||||| the base of the kept change"
	markKept = "======="
	markEnd  = ">>>>>>> the kept change"
)

func (m *merger) conflict(was, kept, now string) {
	m.conflicts = append(m.conflicts, Conflict{Line: m.line + 1, Base: was, Kept: kept, Now: now})
	m.mark(markNow, now)
	if !m.unknown {
		m.mark(markBase, was)
	}
	m.mark(markKept, kept)
	m.mark(markEnd, "")
	m.line += countLines(now)
}

// mark adds a marker and the text after it, whose last line may have no end.
func (m *merger) mark(marker, text string) {
	m.text.WriteString(marker + "\n" + text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		m.text.WriteString("\n")
	}
}

func (m *merger) result() Result { return Result{m.text.String(), m.conflicts} }

// HasMarkers reports whether a text still has the markers of a conflict.
func HasMarkers(text string) bool {
	begins := func(mark string) bool {
		return slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimRight(line, "\r") == mark })
	}
	return begins(markNow) || begins(markEnd)
}

// LineEnds reports whether lines of a text end with CR LF, and whether all lines end in the same way and no CR is
// elsewhere. It leaves out the markers of conflicts.
func LineEnds(text string) (crlf, same bool) {
	var short bool
	same = true
	for line := range strings.Lines(text) {
		switch line {
		case markNow + "\n", markBase + "\n", markKept + "\n", markEnd + "\n":
			continue
		}
		body, ended := strings.CutSuffix(line, "\n")
		body, long := strings.CutSuffix(body, "\r")
		crlf, short = crlf || ended && long, short || ended && !long
		same = same && !strings.Contains(body, "\r") && (ended || !long)
	}
	return crlf, same && !(crlf && short)
}
