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

// act is what is done in a stretch of time. Where several fall into one cell of the
// picture, the last of them in this order is shown.
type act uint8

const (
	actNone act = iota
	actWait     // for locks, or for a slot
	actHold     // the locks are held, and nothing runs
	actAgent
	actCheck
	actLand
)

// stretch is one act in the life of a piece of work.
type stretch struct {
	act         act
	began, over time.Time
}

// lane is the life of one piece of work.
type lane struct {
	work      string
	stretches []stretch
}

// wait says who waited for whom.
type wait struct {
	work   string
	behind []string // whom, in the order of their turns, and for what
	began  time.Time
	took   time.Duration
}

// picture is who ran when, and who waited for whom.
type picture struct {
	began, over time.Time
	crashed     time.Time // zero: nothing did
	lanes       []lane
	waits       []wait
}

// newPicture draws the record and the traces of agents and checks. What was under way when
// the conductor crashed ended then.
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
			continue // somebody else's
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

// drawing is a picture that is being drawn.
type drawing struct {
	picture
	names map[string]string // of items, by id
	order []string          // of the lanes
	lanes map[string]*lane
	since map[string]stretch // what an item does, since when
	waits map[string]*wait   // for locks, by item
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

// see takes up an event.
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

// turn ends what an item did, and begins the next.
func (d *drawing) turn(id, work string, next stretch) {
	did := d.since[id]
	did.over = next.began
	if did.act == actHold && did.began.Before(d.crashed) && did.over.After(d.crashed) {
		did.over = d.crashed // whoever held it was dead from then on
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

// finish puts the lanes in order: units by name, each with its batches behind it.
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

// look is how acts are spelled, each in one column.
type look struct {
	cells [6]string // by act
	crash string
}

var (
	inBlocks = look{cells: [6]string{" ", "·", "─", "█", "▒", "◆"}, crash: "┃"}
	inASCII  = look{cells: [6]string{" ", ".", "-", "#", "=", "*"}, crash: "|"}
)

// tint is the color of an act.
var tint = [6]string{"", term.Yellow, term.Dim, "", term.Green, term.Bold}

// print shows the picture in so many columns.
func (p *picture) print(to io.Writer, look look, columns int, paint func(color, text string) string) {
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
		fmt.Fprintf(to, "  %-*s  %s\n", label, l.work, bar(cells, crash, look, paint))
	}
	fmt.Fprintln(to, paint(term.Dim, strings.TrimRight(fmt.Sprintf("  %-*s  %s", label, "", axis(width, total)), " ")))
	legend := fmt.Sprintf("  %s agent  %s test  %s landed  %s locks held  %s waiting", look.cells[actAgent], look.cells[actCheck], look.cells[actLand], look.cells[actHold], look.cells[actWait])
	if !p.crashed.IsZero() {
		legend += fmt.Sprintf("  %s kill -9", look.crash)
	}
	fmt.Fprintln(to, paint(term.Dim, legend))
}

// bar spells one lane, each run of equal cells painted once.
func bar(cells []act, crash int, look look, paint func(color, text string) string) string {
	var b strings.Builder
	for i := 0; i < len(cells); {
		if i == crash && cells[i] != actLand {
			b.WriteString(paint(term.Red, look.crash))
			i++
			continue
		}
		end := i
		for end < len(cells) && cells[end] == cells[i] && (end == i || end != crash) {
			end++
		}
		text := strings.Repeat(look.cells[cells[i]], end-i)
		if color := tint[cells[i]]; color != "" {
			text = paint(color, text)
		}
		b.WriteString(text)
		i = end
	}
	return strings.TrimRight(b.String(), " ")
}

// axis marks the seconds.
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
		if mark := []rune(term.Span(at.Round(time.Second))); i+len(mark) <= width { // half a number is another one
			copy(line[i:], mark)
		}
	}
	return string(line)
}

// printWaits says who waited for whom, the longest first.
func (p *picture) printWaits(to io.Writer) {
	longest := slices.SortedFunc(slices.Values(p.waits), func(a, b wait) int { return cmp.Compare(b.took, a.took) })
	for _, w := range longest {
		fmt.Fprintf(to, "  %s waited %.1fs for %s\n", w.work, w.took.Seconds(), strings.Join(w.behind, ", then "))
	}
}
