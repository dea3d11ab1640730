package view

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/store"
)

// timelineEvents is how many events one picture is made of at most: the latest of them.
const timelineEvents = 50_000

// Timeline says where the time between two moments went. Zero times: all of the last run.
func (l *Look) Timeline(ctx context.Context, from, to time.Time) (*Timeline, error) {
	d := newDrawing()
	s, err := l.scene(ctx, "", func(s *scene, r store.Reader) error {
		d = newDrawing()
		d.from, d.to = s.window(from, to, r.Now().Wall)
		if s.isThisRun() {
			d.Began, d.Over = s.window(time.Time{}, time.Time{}, r.Now().Wall)
		}
		return d.read(r, s.flow)
	})
	if err != nil {
		return nil, err
	}
	entries, err := l.journal.All(s.flow)
	if d.Problems = []string{}; err != nil {
		d.Problems = append(d.Problems, "what agents did: "+err.Error())
	}
	for _, e := range entries {
		d.trace(e)
	}
	return d.finish(s.Moment), nil
}

// window is what is shown: what was asked for, or else the last run.
func (s *scene) window(from, to, now time.Time) (time.Time, time.Time) {
	if from.IsZero() && s.isThisRun() {
		from = s.run.Began
	}
	if to.IsZero() && s.isThisRun() && s.conductor == nil && !s.run.Ended.IsZero() {
		to = s.run.Ended
	}
	if to.IsZero() {
		to = now
	}
	return from.UTC(), to.UTC()
}

// drawing is a timeline that is being drawn.
type drawing struct {
	Timeline
	from, to time.Time
	items    map[string]*lockkeeper.Item
	names    names
	lanes    map[string]*Lane
	since    map[string]Stretch   // what an item does, since when
	waits    map[string]*LockWait // for locks, by item
}

func newDrawing() *drawing {
	return &drawing{items: map[string]*lockkeeper.Item{}, names: names{}, lanes: map[string]*Lane{}, since: map[string]Stretch{}, waits: map[string]*LockWait{}}
}

// read takes up the items of a flow that were alive in the window, and what the log says
// of them.
func (d *drawing) read(r store.Reader, flowName string) error {
	open, err := run.OpenItems(r, flowName)
	if err != nil {
		return err
	}
	for _, items := range open {
		d.take(items, flowName)
	}
	for before, more := uint64(0), true; more; {
		page, err := r.Items(store.ItemQuery{After: before, Limit: eventPage, Latest: true})
		if err != nil {
			return err
		}
		// Where a whole page was over before the window began, so are those before it.
		if more = d.take(page, flowName) && len(page) == eventPage; more {
			before = page[len(page)-1].Seq
		}
	}
	first := uint64(math.MaxUint64)
	for _, it := range d.items {
		first = min(first, it.Seq)
	}
	if len(d.items) == 0 {
		return nil
	}
	return d.readEvents(r, first)
}

// take takes up those items of a flow that were alive in the window, and reports whether
// any item was.
func (d *drawing) take(items []*lockkeeper.Item, flowName string) (alive bool) {
	for _, it := range items {
		if !it.CompletedAt.IsZero() && it.CompletedAt.Before(d.from) {
			continue
		}
		alive = true
		if run.FlowOf(it) != flowName || it.QueuedAt.After(d.to) {
			continue
		}
		d.items[it.ID] = it
		d.since[it.ID] = d.label(it, Stretch{What: DoingQueue, Began: it.QueuedAt})
		d.names.add(it)
	}
	return alive
}

// label says of which item a stretch is, and in which phase: of one that goes through
// several that is not known here.
func (d *drawing) label(it *lockkeeper.Item, s Stretch) Stretch {
	if s.Item = it.ID; it.Unit != string(flow.BatchUnit) {
		s.Phase = it.Phase
	}
	return s
}

func (d *drawing) readEvents(r store.Reader, first uint64) error {
	last, err := r.Events(store.EventQuery{Limit: 1, Latest: true})
	if err != nil || len(last) == 0 {
		return err
	}
	after := first - 1
	if last[0].Seq > timelineEvents && last[0].Seq-timelineEvents > after {
		after, d.Forgotten = last[0].Seq-timelineEvents, true
	}
	for more := true; more; {
		page, err := r.Events(store.EventQuery{After: after, Limit: eventPage})
		if err != nil {
			return err
		}
		if len(page) > 0 && after == first-1 && page[0].Seq > first {
			d.Forgotten = true // the log was cut since
		}
		for _, ev := range page {
			after = ev.Seq
			if ev.At.After(d.to) {
				return nil
			}
			d.see(ev)
		}
		more = len(page) == eventPage
	}
	return nil
}

// see takes up an event.
func (d *drawing) see(ev lockkeeper.Event) {
	id := cmp.Or(ItemOf(ev), ev.Holder)
	it := d.items[id]
	if it == nil {
		return
	}
	switch ev.Kind {
	case lockkeeper.EventAcquired:
		d.turn(it, Stretch{What: DoingHold, Began: ev.At})
		d.endWait(id, ev.At, false)
	case lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased, lockkeeper.EventFailed:
		d.turn(it, Stretch{Began: ev.At})
		d.endWait(id, ev.At, false)
	case lockkeeper.EventRequeued:
		d.turn(it, Stretch{What: DoingQueue, Began: ev.At})
	case lockkeeper.EventLanded:
		d.add(it.Workflow, Stretch{What: DoingLand, Began: ev.At, Over: ev.At, Item: id, Text: "landing " + itoa(ev.Seq)})
	case lockkeeper.EventBlocked:
		if d.since[id].What == DoingQueue {
			d.turn(it, Stretch{What: DoingWait, Began: ev.At})
		}
		d.blocked(it, ev)
	}
}

// turn ends what an item did, and begins the next; of no kind: nothing follows.
func (d *drawing) turn(it *lockkeeper.Item, next Stretch) {
	did := d.since[it.ID]
	if did.Over = next.Began; did.What != "" {
		if w := d.waits[it.ID]; w != nil && did.What == DoingWait {
			did.Text = "for " + few(w.Behind)
		}
		d.add(it.Workflow, did)
	}
	d.since[it.ID] = d.label(it, next)
}

func (d *drawing) blocked(it *lockkeeper.Item, ev lockkeeper.Event) {
	w := d.waits[it.ID]
	if w == nil {
		w = &LockWait{Work: it.Workflow, Item: it.ID, Began: ev.At, Behind: []string{}, Paths: []string{}}
		d.waits[it.ID] = w
	}
	for _, c := range ev.Conflicts {
		if name := d.names.of(c.Holder, c.Holder); !slices.Contains(w.Behind, name) {
			w.Behind = append(w.Behind, name)
		}
		if !slices.Contains(w.Paths, c.BlockingPath) {
			w.Paths = append(w.Paths, c.BlockingPath)
		}
	}
}

func (d *drawing) endWait(id string, at time.Time, open bool) {
	w := d.waits[id]
	if w == nil {
		return
	}
	delete(d.waits, id)
	if w.Took, w.Open = seconds(at.Sub(w.Began)), open; at.Before(d.from) {
		return
	}
	d.Waits = append(d.Waits, *w)
}

// trace takes up what an agent or a check did.
func (d *drawing) trace(e run.CallRecord) {
	did := Stretch{What: DoingAgent, Began: e.Began, Over: e.Ended, Item: e.Item, Phase: e.Phase}
	switch it := d.items[e.Item]; {
	case e.IsCheck():
		did.What = DoingCheck
	case e.Call != nil:
		did.USD = e.Call.USD
	case it != nil && it.Status == lockkeeper.ItemDispatched && it.Stage == lockkeeper.StageRunning:
		did.Over, did.Open = d.to, true
	}
	d.add(e.Work, did)
}

// add puts a stretch into its lane, as far as the window shows it.
func (d *drawing) add(work string, s Stretch) {
	if s.Over.Before(s.Began) {
		s.Over = s.Began
	}
	if s.Over.Before(d.from) || s.Began.After(d.to) {
		return
	}
	if d.lanes[work] == nil {
		d.lanes[work] = &Lane{Work: work}
	}
	d.lanes[work].Stretches = append(d.lanes[work].Stretches, s)
}

// finish puts the lanes in order: units by name, each with its batches behind it.
func (d *drawing) finish(m Moment) *Timeline {
	t := &d.Timeline
	t.Moment, t.From, t.To, t.Lanes = m, d.from, d.to, []Lane{}
	for id, doing := range d.since {
		if doing.What != "" && d.items[id].CompletedAt.IsZero() {
			doing.Over, doing.Open = d.to, true
			if w := d.waits[id]; w != nil && doing.What == DoingWait {
				doing.Text = "for " + few(w.Behind)
			}
			d.add(d.items[id].Workflow, doing)
		}
	}
	for id := range d.waits {
		d.endWait(id, d.to, true)
	}
	for _, lane := range d.lanes {
		slices.SortStableFunc(lane.Stretches, func(a, b Stretch) int { return a.Began.Compare(b.Began) })
		t.Lanes = append(t.Lanes, *lane)
	}
	for i := range t.Lanes {
		t.Lanes[i].Unit = d.unitOf(t.Lanes[i])
		for _, s := range t.Lanes[i].Stretches {
			if t.Began.IsZero() || s.Began.Before(t.Began) { // also of a run before the last
				t.Began = s.Began
			}
			t.Over = later(t.Over, s.Over)
		}
	}
	if t.From.IsZero() {
		t.From = t.Began
	}
	slices.SortFunc(t.Lanes, func(a, b Lane) int { return strings.Compare(a.Work, b.Work) })
	t.Waits = listOf(t.Waits)
	slices.SortStableFunc(t.Waits, func(a, b LockWait) int { return cmp.Compare(b.Took, a.Took) })
	t.Busy = busy(t.Lanes)
	return t
}

func (d *drawing) unitOf(lane Lane) string {
	for _, s := range lane.Stretches {
		if it := d.items[s.Item]; it != nil {
			w, _ := run.WorkOf(it)
			return w.Unit
		}
	}
	return ""
}

// busy is how many agents were at work, from when on.
func busy(lanes []Lane) []BusyPoint {
	type edge struct {
		at   time.Time
		step int
	}
	var edges []edge
	for _, lane := range lanes {
		for _, s := range lane.Stretches {
			if s.What == DoingAgent {
				edges = append(edges, edge{s.Began, 1}, edge{s.Over, -1})
			}
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.step, b.step)) })
	points := []BusyPoint{}
	now := 0
	for _, e := range edges {
		now += e.step
		if last := len(points) - 1; last >= 0 && points[last].At.Equal(e.at) {
			points[last].Agents = now
			continue
		}
		points = append(points, BusyPoint{At: e.at, Agents: now})
	}
	return points
}
