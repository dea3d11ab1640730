package demo

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// An act is the activity of an item in a stretch of time. If several share one cell of the picture, the last in
// this order is shown.
type act uint8

const (
	actNone act = iota
	actWait     // waits for locks, or for a slot
	actHold     // holds locks, and nothing runs
	actAgent
	actCheck
	actLand
)

// stretch is one act of a unit or batch.
type stretch struct {
	act         act
	began, over time.Time
}

// lane is one unit or batch over time.
type lane struct {
	work      string
	stretches []stretch
}

// wait is one wait for locks.
type wait struct {
	work   string
	behind []string // holders and paths, in order
	began  time.Time
	took   time.Duration
}

// picture shows who ran when, and who waited for whom.
type picture struct {
	began, over time.Time
	crashed     time.Time // zero: no crash
	lanes       []lane
	waits       []wait
}

// newPicture draws the event log and the traces of agents and checks. Work that ran at the crash
// ends there.
func newPicture(rec *view.Record, traces []run.Trace, crashed time.Time) *picture {
	d := &drawing{picture: picture{crashed: crashed}, names: map[string]string{}, lanes: map[string]*lane{}, since: map[string]stretch{}, waits: map[string]*wait{}}
	for _, it := range rec.Items {
		d.names[it.ID] = it.Workflow
		d.lane(it.Workflow)
		d.since[it.ID] = stretch{act: actWait, began: it.QueuedAt}
	}
	for _, ev := range rec.Events {
		d.see(ev)
	}
	for _, t := range traces {
		if d.lanes[t.Work] == nil {
			continue // belongs to another run
		}
		did := stretch{act: actAgent, began: t.Began, over: t.Ended}
		if t.IsCheck() {
			did.act = actCheck
		} else if t.Cut && t.Began.Before(crashed) {
			did.over = crashed
		}
		d.add(t.Work, did)
	}
	return d.finish()
}

// drawing builds a picture.
type drawing struct {
	picture
	names map[string]string // names of items, by id
	order []string          // order of the lanes
	lanes map[string]*lane
	since map[string]stretch // the current act of each item
	waits map[string]*wait   // waits for locks, by item
}

func (d *drawing) lane(work string) *lane {
	if d.lanes[work] == nil {
		d.lanes[work] = &lane{work: work}
		d.order = append(d.order, work)
	}
	return d.lanes[work]
}

func (d *drawing) add(work string, s stretch) {
	if s.over.Before(s.began) {
		s.over = s.began
	}
	d.lane(work).stretches = append(d.lane(work).stretches, s)
}

// see adds an event.
func (d *drawing) see(ev lockkeeper.Event) {
	id := cmp.Or(ev.Data["item"], ev.Holder)
	work, known := d.names[id]
	if !known {
		return
	}
	switch ev.Kind {
	case lockkeeper.EventAcquired:
		d.turn(id, work, stretch{act: actHold, began: ev.At})
		if w := d.waits[id]; w != nil {
			w.took = ev.At.Sub(w.began)
			d.picture.waits = append(d.picture.waits, *w)
			delete(d.waits, id)
		}
	case lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased:
		d.turn(id, work, stretch{began: ev.At})
	case lockkeeper.EventRequeued:
		d.turn(id, work, stretch{act: actWait, began: ev.At})
	case lockkeeper.EventLanded:
		d.add(work, stretch{act: actLand, began: ev.At, over: ev.At})
	case lockkeeper.EventBlocked:
		d.blocked(id, work, ev)
	}
}

// turn ends the act of an item, and starts the next.
func (d *drawing) turn(id, work string, next stretch) {
	did := d.since[id]
	did.over = next.began
	if did.act == actHold && did.began.Before(d.crashed) && did.over.After(d.crashed) {
		did.over = d.crashed // its holder was dead from then on
	}
	if did.act != actNone {
		d.add(work, did)
	}
	d.since[id] = next
}

func (d *drawing) blocked(id, work string, ev lockkeeper.Event) {
	w := d.waits[id]
	if w == nil {
		w = &wait{work: work, began: ev.At}
		d.waits[id] = w
	}
	for _, c := range ev.Conflicts {
		holder := fmt.Sprintf("%s (%s)", cmp.Or(d.names[c.Holder], c.Holder), path.Base(c.BlockingPath))
		if !slices.Contains(w.behind, holder) {
			w.behind = append(w.behind, holder)
		}
	}
}

// finish sorts the lanes: units by name, each followed by its batches.
func (d *drawing) finish() *picture {
	slices.Sort(d.order)
	for _, work := range d.order {
		l := d.lanes[work]
		if len(l.stretches) == 0 {
			continue
		}
		for _, s := range l.stretches {
			if d.began.IsZero() || s.began.Before(d.began) {
				d.began = s.began
			}
			if s.over.After(d.over) {
				d.over = s.over
			}
		}
		d.picture.lanes = append(d.picture.lanes, *l)
	}
	return &d.picture
}

// symbols are the characters of the picture.
type symbols struct {
	cells [6]string // by act
	crash string
}

var (
	inBlocks = symbols{cells: [6]string{" ", "·", "─", "█", "▒", "◆"}, crash: "┃"}
	inASCII  = symbols{cells: [6]string{" ", ".", "-", "#", "=", "*"}, crash: "|"}
)

// tint is the color of each act.
var tint = [6]string{"", term.Yellow, term.Dim, "", term.Green, term.Bold}

// print writes the picture in the given width.
func (p *picture) print(to io.Writer, s symbols, columns int, paint func(color, text string) string) {
	label := 0
	for _, l := range p.lanes {
		label = max(label, len(l.work))
	}
	width := max(20, columns-label-4)
	total := p.over.Sub(p.began)
	column := func(at time.Time) int {
		if total <= 0 {
			return 0
		}
		return min(width-1, max(0, int(int64(at.Sub(p.began))*int64(width)/int64(total))))
	}
	for _, l := range p.lanes {
		cells := make([]act, width)
		for _, s := range l.stretches {
			for i := column(s.began); i <= column(s.over); i++ {
				cells[i] = max(cells[i], s.act)
			}
		}
		crash := -1
		if !p.crashed.IsZero() {
			crash = column(p.crashed)
		}
		fmt.Fprintf(to, "  %-*s  %s\n", label, l.work, bar(cells, crash, s, paint))
	}
	fmt.Fprintln(to, paint(term.Dim, strings.TrimRight(fmt.Sprintf("  %-*s  %s", label, "", axis(width, total)), " ")))
	legend := fmt.Sprintf("  %s agent  %s test  %s landed  %s locks held  %s waiting", s.cells[actAgent], s.cells[actCheck], s.cells[actLand], s.cells[actHold], s.cells[actWait])
	if !p.crashed.IsZero() {
		legend += fmt.Sprintf("  %s kill -9", s.crash)
	}
	fmt.Fprintln(to, paint(term.Dim, legend))
}

// bar returns one lane, each run of equal cells painted once.
func bar(cells []act, crash int, s symbols, paint func(color, text string) string) string {
	var b strings.Builder
	for i := 0; i < len(cells); {
		if i == crash && cells[i] != actLand {
			b.WriteString(paint(term.Red, s.crash))
			i++
			continue
		}
		end := i
		for end < len(cells) && cells[end] == cells[i] && (end == i || end != crash) {
			end++
		}
		text := strings.Repeat(s.cells[cells[i]], end-i)
		if color := tint[cells[i]]; color != "" {
			text = paint(color, text)
		}
		b.WriteString(text)
		i = end
	}
	return strings.TrimRight(b.String(), " ")
}

// axis returns the time scale.
func axis(width int, total time.Duration) string {
	step := time.Second
	for _, longer := range []time.Duration{2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600} {
		if int64(step)*int64(width) >= 7*int64(total) {
			break
		}
		step = longer * time.Second
	}
	line := []rune(strings.Repeat(" ", width))
	for at := time.Duration(0); at <= total; at += step {
		i := 0
		if total > 0 {
			i = int(int64(at) * int64(width) / int64(total))
		}
		if mark := []rune(term.Span(at.Round(time.Second))); i+len(mark) <= width { // only whole numbers
			copy(line[i:], mark)
		}
	}
	return string(line)
}

// printWaits lists who waited for whom, the longest first.
func (p *picture) printWaits(to io.Writer) {
	longest := slices.SortedFunc(slices.Values(p.waits), func(a, b wait) int { return cmp.Compare(b.took, a.took) })
	for _, w := range longest {
		fmt.Fprintf(to, "  %s waited %.1fs for %s\n", w.work, w.took.Seconds(), strings.Join(w.behind, ", then "))
	}
}
