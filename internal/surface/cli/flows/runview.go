package flows

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/sched"
)

// waitsShown is how many waiting items a picture explains.
const waitsShown = 3

// runView is a run at one moment.
type runView struct {
	p      *program
	flow   flow.Flow
	out    *run.Outcome
	usd    float64 // the budget; 0: no limit
	taken  map[string]int
	limits map[string]int
	waits  []*sched.Explanation
}

// lines returns the picture: a summary, as many units as there is room for, and the waiting items with their
// blockers.
func (v *runView) lines(took time.Duration, room int) []string {
	lines := []string{v.summary(took)}
	var waits []string
	for _, e := range v.waits {
		waits = append(waits, fmt.Sprintf("  waits: %s (%s) for %s", jobs.Title(&e.Item), e.Item.ID, jobs.WaitOf(v.p.Program, e)))
	}
	room = max(1, room-len(lines)-len(waits))
	return append(append(lines, v.units(room)...), waits...)
}

func (v *runView) summary(took time.Duration) string {
	st := v.out.State
	complete, failed, all, _ := countUnits(v.out, v.flow)
	parts := []string{fmt.Sprintf("%s, %s: %d of %d complete, %d failed", v.flow.Name, term.Span(took), complete, all, failed)}
	parts = append(parts, fmt.Sprintf("agents %d/%d, tests %d/%d", v.taken[sched.PoolAgent], v.limits[sched.PoolAgent], v.taken[sched.PoolTest], v.limits[sched.PoolTest]))
	parts = append(parts, money(st, v.usd))
	if asked := countDecisions(v.out.Waiting); asked != "" {
		parts = append(parts, asked)
	}
	return strings.Join(parts, "; ")
}

// money formats the cost so far and the estimated rest.
func money(st *run.State, limit float64) string {
	text := fmt.Sprintf("$%.2f", st.Spent.USD())
	if limit > 0 {
		text += fmt.Sprintf(" of $%.2f", limit)
	}
	if st.Rest > 0 {
		text += fmt.Sprintf(", ≈$%.2f to go", st.Rest)
	}
	return text
}

// countDecisions returns how many decisions of each kind wait for a person, or "".
func countDecisions(open []progress.Decision) string {
	count := map[progress.Kind]int{}
	for _, g := range open {
		count[g.Ref.Kind]++
	}
	var parts []string
	for _, kind := range kinds() {
		if n := count[kind]; n > 0 {
			parts = append(parts, term.Counted(n, string(kind)))
		}
	}
	if parts == nil {
		return ""
	}
	return strings.Join(parts, ", ") + term.Plural(len(open), " needs", " need") + " your decision"
}

// units returns the lines of the units, active ones first.
func (v *runView) units(room int) []string {
	list := slices.Clone(v.out.State.Units)
	slices.SortStableFunc(list, func(a, b run.UnitState) int { return cmp.Compare(v.order(a), v.order(b)) })
	left := 0
	if len(list) > room {
		left = len(list) - room + 1
		list = list[:room-1]
	}
	wide := 0
	for _, u := range list {
		wide = max(wide, len([]rune(u.Name)))
	}
	wide = min(wide, jobs.NameWidth)
	var lines []string
	for _, u := range list {
		lines = append(lines, fmt.Sprintf("  %-*s  %s  %s", wide, term.Shorten(term.Clean(u.Name), wide), v.marks(u), v.state(u)))
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", left))
	}
	return lines
}

// order returns the rank of a unit in the picture.
func (v *runView) order(u run.UnitState) int {
	switch u.Status {
	case flow.Failed:
		return 1
	case flow.Queued:
		return 2
	case flow.Complete:
		return 3
	}
	return 0
}

// marks returns one mark for each phase of a unit: done, current and to come.
func (v *runView) marks(u run.UnitState) string {
	if u.Status == flow.Complete {
		return strings.Repeat("■", len(v.flow.Phases))
	}
	at := slices.IndexFunc(v.flow.Phases, func(p flow.Phase) bool {
		return p.Status == u.Status || p.Fixing != "" && p.Fixing == u.Status || u.Pending != "" && p.Name == u.Pending
	})
	mark := "▶"
	switch {
	case u.Status == flow.Failed:
		mark = "✗"
	case u.Status == flow.Queued:
		mark = "○"
	}
	if at < 0 {
		at = 0
	}
	return strings.Repeat("■", at) + mark + strings.Repeat("·", len(v.flow.Phases)-at-1)
}

// state describes where a unit and its batches are.
func (v *runView) state(u run.UnitState) string {
	text := v.words(u.Status, u.Pending, u.Since, u.Note)
	if u.Status == flow.Failed && u.Error != "" {
		text += ": " + term.Clean(firstLine(u.Error))
	}
	var parts []string
	for _, b := range u.Batches {
		at := v.words(b.Status, b.Pending, b.Since, b.Note)
		if len(b.Blocked) > 0 {
			at = "after " + strings.Join(b.Blocked, ", ")
		}
		parts = append(parts, term.Clean(b.ID)+" "+at)
	}
	if parts != nil {
		text += " | " + strings.Join(parts, ", ")
	}
	return text
}

// words describes a status.
func (v *runView) words(status, pending string, since time.Time, note string) string {
	text := strings.ReplaceAll(status, "_", " ")
	switch status {
	case flow.Complete:
		return "complete"
	case flow.NoChange:
		return "no change"
	case flow.Failed:
		return "failed"
	case flow.Queued:
		return "queued for " + pending
	}
	if !since.IsZero() {
		text += " " + term.Span(v.p.Now().Sub(since))
	}
	if note != "" {
		text += " (" + term.Clean(note) + ")"
	}
	return text
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
