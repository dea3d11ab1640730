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
	"lockkeeper/internal/surface/acts"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// Timeline is the activity of each piece of work over time.
type Timeline struct {
	Moment
	From      time.Time   `json:"from"` // start of the shown period
	To        time.Time   `json:"to"`
	Began     time.Time   `json:"began,omitzero"` // start of the run, or of earlier activity that is shown
	Over      time.Time   `json:"over,omitzero"`
	Lanes     []Lane      `json:"lanes"`
	Waits     []LockWait  `json:"waits"`     // longest first
	Busy      []BusyPoint `json:"busy"`      // number of agents at work over time
	Forgotten bool        `json:"forgotten"` // the log does not reach back to From
	Problems  []string    `json:"problems"`  // what could not be read
}

// A Lane is the activity of one piece of work.
type Lane struct {
	Work      string     `json:"work"`
	Unit      string     `json:"unit,omitempty"`
	Stretches []Interval `json:"stretches"` // sorted by start
}

// Interval is one activity with its start and end.
type Interval struct {
	What  Activity  `json:"what"`
	Began time.Time `json:"began"`
	Over  time.Time `json:"over"`
	Open  bool      `json:"open,omitempty"` // the activity continues
	Item  string    `json:"item,omitempty"`
	Phase string    `json:"phase,omitempty"`
	Text  string    `json:"text,omitempty"` // for example, the blockers or the landing
	USD   float64   `json:"usd,omitempty"`
}

// Activity is the kind of an interval.
type Activity string

// Kinds of activity.
const (
	ActivityQueued  Activity = "queued"  // the item waits for its turn or a slot
	ActivityBlocked Activity = "blocked" // the item waits for locks
	ActivityHolding Activity = "holds"   // the item holds locks, and nothing runs
	ActivityAgent   Activity = "agent"
	ActivityCheck   Activity = "check" // tests or CI run
	ActivityLanded  Activity = "landed"
)

type LockWait struct {
	Work   string    `json:"work"`
	Item   string    `json:"item"`
	Behind []string  `json:"behind"` // blockers in order
	Paths  []string  `json:"paths"`
	Began  time.Time `json:"began"`
	Took   Seconds   `json:"took_seconds"`
	Open   bool      `json:"open,omitempty"` // the item still waits
}

// BusyPoint is the number of agents at work from a time on.
type BusyPoint struct {
	At     time.Time `json:"at"`
	Agents int       `json:"agents"`
}

// timelineEvents limits the events that a timeline reads, the latest ones.
const timelineEvents = 50_000

// Timeline returns the activity between two times; zero times: the last run.
func (rd *Reader) Timeline(ctx context.Context, from, to time.Time) (*Timeline, error) {
	d := newTimeline()
	s, err := rd.snapshot(ctx, "", func(s *snapshot, r store.Reader) error {
		d = newTimeline()
		d.from, d.to = s.window(from, to, r.Now().Wall)
		if s.isThisRun() {
			d.Began, d.Over = s.window(time.Time{}, time.Time{}, r.Now().Wall)
		}
		return d.read(r, s.flow)
	})
	if err != nil {
		return nil, err
	}
	entries, err := rd.journal.All(s.flow)
	if d.Problems = []string{}; err != nil {
		d.Problems = append(d.Problems, "calls of agents: "+err.Error())
	}
	for _, e := range entries {
		d.trace(e)
	}
	return d.finish(s.Moment), nil
}

// window returns the period to show: the requested one, or the last run.
func (s *snapshot) window(from, to, now time.Time) (time.Time, time.Time) {
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

type timelineBuilder struct {
	Timeline
	from, to time.Time
	items    map[string]*lockkeeper.Item
	names    names
	lanes    map[string]*Lane
	since    map[string]Interval  // the current activity by item
	waits    map[string]*LockWait // waits for locks, by item
}

func newTimeline() *timelineBuilder {
	return &timelineBuilder{items: map[string]*lockkeeper.Item{}, names: names{}, lanes: map[string]*Lane{}, since: map[string]Interval{}, waits: map[string]*LockWait{}}
}

// read reads the items of a flow that existed in the period, and their events.
func (d *timelineBuilder) read(r store.Reader, flowName string) error {
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
		// If a whole page ended before the period, so did all earlier items.
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

// take adds the items of a flow that existed in the period. It reports whether any item
// of any flow did.
func (d *timelineBuilder) take(items []*lockkeeper.Item, flowName string) (alive bool) {
	for _, it := range items {
		if !it.CompletedAt.IsZero() && it.CompletedAt.Before(d.from) {
			continue
		}
		alive = true
		if run.FlowOf(it) != flowName || it.QueuedAt.After(d.to) {
			continue
		}
		d.items[it.ID] = it
		d.since[it.ID] = d.label(it, Interval{What: ActivityQueued, Began: it.QueuedAt})
		d.names.add(it)
	}
	return alive
}

// label sets the item and phase of an interval. A batch passes through several phases, so
// its phase is unknown here.
func (d *timelineBuilder) label(it *lockkeeper.Item, s Interval) Interval {
	if s.Item = it.ID; it.Unit != string(flow.BatchUnit) {
		s.Phase = it.Phase
	}
	return s
}

func (d *timelineBuilder) readEvents(r store.Reader, first uint64) error {
	last, err := r.Events(store.EventQuery{Limit: 1, Latest: true})
	if err != nil || len(last) == 0 {
		return err
	}
	after := first - 1
	if last[0].Seq > timelineEvents && last[0].Seq-timelineEvents > after {
		after, d.Forgotten = last[0].Seq-timelineEvents, true
	}
	for ev, err := range eachEvent(r, store.EventQuery{After: after}) {
		if err != nil {
			return err
		}
		d.Forgotten = d.Forgotten || after == first-1 && ev.Seq > first // older events were trimmed
		if after = ev.Seq; ev.At.After(d.to) {
			break
		}
		d.see(ev)
	}
	return nil
}

func (d *timelineBuilder) see(ev lockkeeper.Event) {
	id := cmp.Or(sched.ItemID(ev), ev.Holder)
	it := d.items[id]
	if it == nil {
		return
	}
	switch ev.Kind {
	case lockkeeper.EventAcquired:
		d.turn(it, Interval{What: ActivityHolding, Began: ev.At})
		d.endWait(id, ev.At, false)
	case lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased, lockkeeper.EventFailed:
		d.turn(it, Interval{Began: ev.At})
		d.endWait(id, ev.At, false)
	case lockkeeper.EventRequeued:
		d.turn(it, Interval{What: ActivityQueued, Began: ev.At})
	case lockkeeper.EventLanded:
		d.add(it.Workflow, Interval{What: ActivityLanded, Began: ev.At, Over: ev.At, Item: id, Text: "landing " + itoa(ev.Seq)})
	case lockkeeper.EventBlocked:
		if d.since[id].What == ActivityQueued {
			d.turn(it, Interval{What: ActivityBlocked, Began: ev.At})
		}
		d.blocked(it, ev)
	}
}

// turn ends the current activity of an item and starts the next one, if it has a kind.
func (d *timelineBuilder) turn(it *lockkeeper.Item, next Interval) {
	did := d.since[it.ID]
	if did.Over = next.Began; did.What != "" {
		if w := d.waits[it.ID]; w != nil && did.What == ActivityBlocked {
			did.Text = "for " + few(w.Behind, pathsInLine)
		}
		d.add(it.Workflow, did)
	}
	d.since[it.ID] = d.label(it, next)
}

func (d *timelineBuilder) blocked(it *lockkeeper.Item, ev lockkeeper.Event) {
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

func (d *timelineBuilder) endWait(id string, at time.Time, open bool) {
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

// trace adds a call of an agent or a check.
func (d *timelineBuilder) trace(e run.CallRecord) {
	did := Interval{What: ActivityAgent, Began: e.Began, Over: e.Ended, Item: e.Item, Phase: e.Phase}
	switch it := d.items[e.Item]; {
	case e.IsCheck():
		did.What = ActivityCheck
	case e.Call != nil:
		did.USD = e.Call.USD
	case it != nil && it.Status == lockkeeper.ItemDispatched && it.Stage == lockkeeper.StageRunning:
		did.Over, did.Open = d.to, true
	}
	d.add(e.Work, did)
}

// add adds an interval to its lane, if it is in the period.
func (d *timelineBuilder) add(work string, s Interval) {
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

// finish ends open intervals and sorts the lanes by name.
func (d *timelineBuilder) finish(m Moment) *Timeline {
	t := &d.Timeline
	t.Moment, t.From, t.To, t.Lanes = m, d.from, d.to, []Lane{}
	for id, doing := range d.since {
		if doing.What != "" && d.items[id].CompletedAt.IsZero() {
			doing.Over, doing.Open = d.to, true
			if w := d.waits[id]; w != nil && doing.What == ActivityBlocked {
				doing.Text = "for " + few(w.Behind, pathsInLine)
			}
			d.add(d.items[id].Workflow, doing)
		}
	}
	for id := range d.waits {
		d.endWait(id, d.to, true)
	}
	for _, lane := range d.lanes {
		slices.SortStableFunc(lane.Stretches, func(a, b Interval) int { return a.Began.Compare(b.Began) })
		t.Lanes = append(t.Lanes, *lane)
	}
	for i := range t.Lanes {
		t.Lanes[i].Unit = d.unitOf(t.Lanes[i])
		for _, s := range t.Lanes[i].Stretches {
			if t.Began.IsZero() || s.Began.Before(t.Began) { // the span can belong to an earlier run
				t.Began = s.Began
			}
			t.Over = later(t.Over, s.Over)
		}
	}
	if t.From.IsZero() {
		t.From = t.Began
	}
	slices.SortFunc(t.Lanes, func(a, b Lane) int { return strings.Compare(a.Work, b.Work) })
	t.Waits = acts.OrEmpty(t.Waits)
	slices.SortStableFunc(t.Waits, func(a, b LockWait) int { return cmp.Compare(b.Took, a.Took) })
	t.Busy = busy(t.Lanes)
	return t
}

func (d *timelineBuilder) unitOf(lane Lane) string {
	for _, s := range lane.Stretches {
		if it := d.items[s.Item]; it != nil {
			w, _ := run.WorkOf(it)
			return w.Unit
		}
	}
	return ""
}

// busy returns the number of agents at work over time.
func busy(lanes []Lane) []BusyPoint {
	type edge struct {
		at   time.Time
		step int
	}
	var edges []edge
	for _, lane := range lanes {
		for _, s := range lane.Stretches {
			if s.What == ActivityAgent {
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
