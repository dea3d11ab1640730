package top

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// nowHead draws how far the run is: always shown above the rows.
func (m *model) nowHead() (list []string) {
	n := m.seen.now
	if n == nil {
		return nil
	}
	add := func(parts ...string) {
		parts = nonEmpty(parts)
		if len(parts) > 0 {
			list = append(list, " "+strings.Join(parts, "  "))
		}
	}
	if n.Run.State == view.RunNone {
		add(paint(bold, "No run has started here yet."), paint(dim, "lockkeeper run"))
	} else {
		p := n.Cockpit.Progress
		failed := ""
		if n.Run.Failed > 0 {
			failed = paint(bad, fmt.Sprintf("%d failed", n.Run.Failed))
		}
		add(paint(bold, fmt.Sprintf("%d of %d complete", n.Run.Complete, n.Run.Units)), failed, bar(p.Share, max(4, min(40, m.width/4)))+fmt.Sprintf(" %.0f %%", 100*p.Share), m.finish())
	}
	add(m.money(), m.slots())
	add(m.funnel())
	if n.Run.Error != "" {
		add(paint(bad, "the run ended early: "+oneLine(n.Run.Error)))
	}
	if n.Run.Baseline != "" {
		add(paint(attend, "the tests failed before the run: "+oneLine(n.Run.Baseline)))
	}
	for _, problem := range n.Problems {
		add(paint(bad, oneLine(problem)))
	}
	return list
}

func nonEmpty(parts []string) (list []string) {
	for _, p := range parts {
		if p != "" {
			list = append(list, p)
		}
	}
	return list
}

// finish says when the run probably ends.
func (m *model) finish() string {
	n := m.seen.now
	f := n.Cockpit.Forecast
	switch {
	case !n.Run.Ended.IsZero():
		return "ended " + m.opt.IO.Clock(n.Run.Ended)
	case f == nil && n.Run.Began.IsZero():
		return ""
	case f == nil:
		return "for " + ago(n.Run.Began, m.clock())
	case f.Overdue:
		return "later than predicted"
	}
	text := "ends ≈ " + m.opt.IO.Clock(f.Finish)
	if f.Error > 0 {
		text += fmt.Sprintf(" (%s to %s)", m.opt.IO.Clock(f.Earliest()), m.opt.IO.Clock(f.Latest()))
	}
	return text
}

func (m *model) money() string {
	n := m.seen.now
	c := n.Cost
	text := dollars(c.USD)
	if c.BudgetUSD > 0 {
		text += " of " + dollars(c.BudgetUSD)
	}
	if c.TotalUSD > c.USD {
		text += ", ≈ " + dollars(c.TotalUSD) + " in all"
	}
	if c.Exhausted {
		return paint(bad, text+", used up")
	}
	return text
}

// slots says how many slots are in use, and what queued work waits for.
func (m *model) slots() string {
	n := m.seen.now
	var parts []string
	for _, s := range n.Slots {
		if s.Taken > 0 || s.Pool != "api" {
			parts = append(parts, fmt.Sprintf("%s %d/%d", poolName(s.Pool), s.Taken, s.Limit))
		}
	}
	w := n.Cockpit.Waiting
	for _, wait := range []struct {
		count int
		what  string
	}{{w.Slot, "waiting for a slot"}, {w.Locks, "blocked by locks"}, {w.After, "waiting for other work"}, {w.Other, "waiting for a machine"}} {
		if wait.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", wait.count, wait.what))
		}
	}
	return strings.Join(parts, ", ")
}

func poolName(pool string) string {
	if pool == "agent" || pool == "claude" {
		return "agents"
	}
	if pool == "test" {
		return "tests"
	}
	return pool
}

// funnel draws how many units or batches each phase has yet to end.
func (m *model) funnel() string {
	var parts []string
	for _, s := range m.seen.now.Cockpit.Funnel {
		if s.Total() == 0 {
			continue
		}
		text := fmt.Sprintf("%s %d/%d", plain(safe(s.Phase)), s.Done, s.Total())
		switch {
		case s.Failed > 0:
			text = paint(bad, text+fmt.Sprintf(" ✗%d", s.Failed))
		case s.Active > 0:
			text = paint(good, text+fmt.Sprintf(" ▶%d", s.Active))
		case s.People > 0:
			text = paint(attend, text+fmt.Sprintf(" ?%d", s.People))
		case s.Done == s.Total():
			text = paint(dim, text)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ▸ ")
}

// nowRows lists what runs, what needs a person, what is stuck and why work failed.
func (m *model) nowRows() (list []row) {
	n := m.seen.now
	if n == nil {
		return nil
	}
	section := func(name string, rows []row) {
		if len(rows) > 0 {
			list = append(append(list, title(name)), rows...)
		}
	}
	section("Slots", m.laneRows(n))
	if n.Needs.Total > 0 {
		section(fmt.Sprintf("Needs you (%d), the oldest for %s", n.Needs.Total, ago(n.Needs.Oldest, m.clock())), m.needsRows(n))
	}
	section(fmt.Sprintf("Stuck (%d)", len(n.Stuck)), m.stuckRows(n))
	section(fmt.Sprintf("Failed (%d)", len(n.Failed)), m.causeRows(n))
	if list == nil {
		list = append(list, row{text: paint(dim, "Nothing runs, and nothing waits for you.")})
	}
	if n.Run.Next != "" {
		list = append(list, row{text: paint(dim, "next: "+safe(n.Run.Next))})
	}
	var lately []row
	for i := len(m.news) - 1; i >= 0; i-- {
		lately = append(lately, row{text: m.news[i], tone: dim})
	}
	if lately == nil {
		for _, ev := range n.Changes.Latest {
			lately = append(lately, row{text: m.opt.IO.Clock(ev.At) + " " + oneLine(ev.Text), tone: dim})
		}
	}
	section("Lately", lately)
	return list
}

// laneRows draws a line for each slot that works, one for all that are free for the same reason,
// and one for what holds locks without a slot.
func (m *model) laneRows(n *view.Now) (list []row) {
	machines, wide := 0, 8
	for _, l := range n.Cockpit.Lanes {
		machines = max(machines, ansi.StringWidth(safe(l.Machine)))
		if l.Work != nil {
			wide = max(wide, ansi.StringWidth(oneLine(l.Work.Title())))
		}
	}
	wide, machines = min(wide, max(10, m.width/4)), min(machines, 12)
	slot := func(name, machine string) string {
		name = column(name, 9)
		if machines > 0 {
			name += column(safe(machine), machines) + " "
		}
		return name
	}
	free := map[string]int{} // the place of the row for a reason
	count := map[string]int{}
	for _, l := range n.Cockpit.Lanes {
		switch {
		case l.Work != nil:
			list = append(list, m.workRow("slot "+l.ID, slot(l.ID, l.Machine), *l.Work, wide))
		case l.Free != nil:
			why := l.Pool + " " + l.Machine + " " + l.Free.Text
			if count[why]++; count[why] == 1 {
				free[why] = len(list)
				list = append(list, row{})
			}
			name := l.ID
			if count[why] > 1 {
				name = fmt.Sprintf("%d free", count[why])
			}
			list[free[why]] = row{text: paint(dim, " "+slot(name, l.Machine)+" · "+poolName(l.Pool)+": "+oneLine(l.Free.Text))}
		}
	}
	for _, w := range n.Cockpit.Aside {
		list = append(list, m.workRow("aside "+w.Item, slot("", ""), w, wide))
	}
	return list
}

func (m *model) workRow(id, pool string, w view.LaneWork, wide int) row {
	took := ago(w.Since, m.clock())
	mark, tone := "▶", good
	if w.Silent {
		mark, tone = "!", attend
	}
	state := plain(safe(cmp.Or(w.Phase, w.State)))
	if w.State != "running" && w.State != "" {
		state += ", " + plain(safe(w.State))
	}
	text := pool + " " + paint(tone, mark) + " " + column(middle(oneLine(w.Title()), wide), wide) + " " + column(state, min(18, max(8, m.width/6))) + " " + column(took, 7)
	if line := oneLine(w.Line); line != "" {
		text += " " + paint(dim, line)
	} else if w.Silent {
		text += " " + paint(attend, "no output for "+ago(w.Said, m.clock()))
	}
	return row{id: id, text: text, goes: m.opensItem(w.Item)}
}

func (m *model) opensItem(id string) func(*model) {
	if id == "" {
		return nil
	}
	return func(m *model) { m.show(opened{item: id}) }
}

func (m *model) needsRows(n *view.Now) (list []row) {
	for _, kind := range n.Needs.Kinds {
		list = append(list, row{id: "needs " + string(kind.Kind), text: paint(attend, term.Counted(kind.Count, string(kind.Kind))), goes: func(m *model) {
			m.turn(decidePage)
			m.marks[decidePage] = &mark{id: decisionRow + kind.First.String()}
		}})
	}
	return list
}

func (m *model) stuckRows(n *view.Now) (list []row) {
	for i, s := range n.Stuck {
		text := paint(bad, oneLine(s.Name)) + " " + plain(string(s.Kind)) + " " + plain(safe(s.Phase))
		for _, b := range s.Behind {
			text += " ← " + oneLine(b.Name) + " " + paint(dim, safe(b.Path))
		}
		if s.Item == "" && len(s.Acts) > 0 {
			text += "  " + paint(dim, safe(s.Acts[0].Command))
		}
		list = append(list, row{id: fmt.Sprint("stuck ", s.Kind, cmp.Or(s.Item, s.GrantID, fmt.Sprint(i))), text: text, note: ago(s.Since, m.clock()), goes: m.opensItem(s.Item)})
	}
	return list
}

// causeRow begins the ids of rows of causes.
const causeRow = "cause "

// causeRows lists the causes of failures, and failures without a cause.
func (m *model) causeRows(n *view.Now) (list []row) {
	known := map[string]bool{}
	for _, c := range n.Cockpit.Causes {
		list = append(list, row{id: causeRow + c.ID, text: paint(bad, fmt.Sprintf("%3d × ", len(c.Failures))) + oneLine(c.Title), note: ago(c.Last, m.clock()),
			goes: func(m *model) { m.show(opened{cause: c.ID}) }})
		for _, f := range c.Failures {
			known[f.Item] = true
		}
	}
	for _, f := range n.Failed { // without a known cause
		if !known[f.Item] {
			list = append(list, row{id: "failed " + f.Item, text: paint(bad, oneLine(f.Name())) + " " + plain(safe(f.Phase)) + "  " + oneLine(f.Reason), note: ago(f.At, m.clock()), goes: m.opensItem(f.Item)})
		}
	}
	return list
}

// cause returns a cause of failures that is still known.
func (m *model) cause(id string) (conduct.Cause, bool) {
	if n := m.seen.now; n != nil {
		for _, c := range n.Cockpit.Causes {
			if c.ID == id {
				return c, true
			}
		}
	}
	return conduct.Cause{}, false
}

// causeLines draws a cause with its output and what failed.
func (m *model) causeLines() []string {
	c, known := m.cause(m.open.cause)
	if !known {
		return []string{"", " nothing fails for this reason any more"}
	}
	list := []string{paint(bad, " "+oneLine(c.Title)), fmt.Sprintf(" %s in %s, from %s to %s", term.Counted(len(c.Failures), "failure"), plain(safe(strings.Join(c.Phases, ", "))), m.opt.IO.Clock(c.First), m.opt.IO.Clock(c.Last)), ""}
	for _, line := range c.Lines {
		list = append(list, lines("  "+line, m.width)...)
	}
	if c.Output != "" {
		list = append(list, paint(dim, "  all of it: "+safe(c.Output)))
	}
	list = append(list, "", paint(bold, " What failed"))
	for _, f := range c.Failures {
		list = append(list, "  "+oneLine(f.Name())+"  "+paint(dim, plain(safe(f.Phase))+"  "+f.Item))
	}
	return list
}
