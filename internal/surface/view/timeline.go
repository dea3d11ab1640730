package view

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
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
	Sort      string      `json:"sort"`      // the order of Lanes
	Forgotten bool        `json:"forgotten"` // the log does not reach back to From
	Problems  []string    `json:"problems"`  // what could not be read
}

// A Lane is the activity of one piece of work.
type Lane struct {
	Work      string     `json:"work"`
	Unit      string     `json:"unit,omitempty"`
	Stretches []Interval `json:"stretches"` // sorted by start

	Totals   map[Activity]Seconds `json:"totals"`   // the time of each activity in the period
	Waited   Seconds              `json:"waited"`   // for slots, locks and other work
	Worked   Seconds              `json:"worked"`   // the rest
	USD      float64              `json:"usd"`      // the cost of the calls that are shown
	Landings int                  `json:"landings"` // landings in the period
}

// TimelineQuery selects a period and the lanes of a timeline.
type TimelineQuery struct {
	From, To time.Time // zero: the last run
	Text     string    // text to find in the name of the work, ignoring case
	Sort     string    // one of TimelineSorts; empty: name
}

// TimelineSorts are the orders of lanes: by name, by start, or those with the most time, waiting or
// cost first.
func TimelineSorts() []string { return []string{"name", "start", "time", "waited", "cost"} }

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

	gone bool // the process of the item was gone at the end
}

// Activity is the kind of an interval.
type Activity string

// Kinds of activity.
const (
	ActivityAfter     Activity = "after"     // the item waits for another one
	ActivityQueued    Activity = "queued"    // the item waits for its turn or a slot
	ActivityBlocked   Activity = "blocked"   // the item waits for locks
	ActivityPreparing Activity = "preparing" // a workspace is prepared, or the work of an agent is stored
	ActivityAgent     Activity = "agent"
	ActivityCheck     Activity = "check" // tests or CI run
	ActivityLanding   Activity = "landing"
	ActivityLanded    Activity = "landed" // the moment of a landing
)

// IsWait reports whether work waits in an activity.
func (a Activity) IsWait() bool {
	return a == ActivityAfter || a == ActivityQueued || a == ActivityBlocked
}

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

// Timeline returns what each piece of work did in a period.
func (rd *Reader) Timeline(ctx context.Context, q TimelineQuery) (*Timeline, error) {
	if q.Sort = cmp.Or(q.Sort, "name"); !slices.Contains(TimelineSorts(), q.Sort) {
		return nil, &lockkeeper.InputError{Field: "sort", Value: q.Sort, Reason: "unknown order", Next: "use one of " + strings.Join(TimelineSorts(), ", ")}
	}
	name := fmt.Sprintf("timeline %d %d", q.From.UnixNano(), q.To.UnixNano())
	all, err := share(ctx, &rd.shared, name, func(ctx context.Context) (*Timeline, error) { return rd.timeline(ctx, q.From, q.To) })
	if err != nil {
		return nil, err
	}
	t := *all
	t.Sort, t.Lanes = q.Sort, q.lanes(all.Lanes)
	return &t, nil
}

// lanes returns the lanes that match, in the order of the query.
func (q TimelineQuery) lanes(all []Lane) []Lane {
	text := strings.ToLower(q.Text)
	list := slices.DeleteFunc(slices.Clone(all), func(l Lane) bool { return !strings.Contains(strings.ToLower(l.Work), text) })
	slices.SortStableFunc(list, func(a, b Lane) int {
		switch q.Sort {
		case "start":
			return a.Stretches[0].Began.Compare(b.Stretches[0].Began)
		case "time":
			return cmp.Compare(b.Worked, a.Worked)
		case "waited":
			return cmp.Compare(b.Waited, a.Waited)
		case "cost":
			return cmp.Compare(b.USD, a.USD)
		}
		return 0 // they are sorted by name
	})
	return list
}

func (rd *Reader) timeline(ctx context.Context, from, to time.Time) (*Timeline, error) {
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
	waits    map[string]*lockWait // waits for locks, by item

	following map[string][]*lockkeeper.Item // the items that wait for each item

	holds []hold                      // when items held their locks
	calls map[string][]run.CallRecord // the calls and checks of each item, in order
	lands map[string][]time.Time      // the landings of each item
}

func newTimeline() *timelineBuilder {
	return &timelineBuilder{items: map[string]*lockkeeper.Item{}, names: names{}, lanes: map[string]*Lane{}, since: map[string]Interval{}, waits: map[string]*lockWait{},
		calls: map[string][]run.CallRecord{}, lands: map[string][]time.Time{}, following: map[string][]*lockkeeper.Item{}}
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
		d.follow(it)
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

// follow sets for which other items an item waits at first.
func (d *timelineBuilder) follow(it *lockkeeper.Item) {
	for _, id := range it.After {
		d.following[id] = append(d.following[id], it)
	}
	isOpen := func(id string) bool {
		first := d.items[id]
		return first != nil && (first.CompletedAt.IsZero() || first.CompletedAt.After(it.QueuedAt))
	}
	if slices.ContainsFunc(it.After, isOpen) {
		d.since[it.ID] = d.label(it, Interval{What: ActivityAfter, Began: it.QueuedAt})
	}
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

// finish ends open intervals and sorts the lanes by name.
func (d *timelineBuilder) finish(m Moment) *Timeline {
	t := &d.Timeline
	t.Moment, t.From, t.To, t.Lanes = m, d.from, d.to, []Lane{}
	for id, doing := range d.since {
		if it := d.items[id]; doing.What != "" && it.CompletedAt.IsZero() {
			doing.Open = true
			d.end(it, doing, d.to)
		}
	}
	for id := range d.waits {
		d.endWait(id, d.to, true)
	}
	for _, h := range d.holds {
		d.divide(h)
	}
	for _, lane := range d.lanes {
		slices.SortStableFunc(lane.Stretches, func(a, b Interval) int { return a.Began.Compare(b.Began) })
		t.Lanes = append(t.Lanes, *lane)
	}
	for i := range t.Lanes {
		t.Lanes[i].Unit = d.unitOf(t.Lanes[i])
		t.Lanes[i].sum(d.from, d.to)
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

// sum adds up the times of a lane that are in a period.
func (l *Lane) sum(from, to time.Time) {
	l.Totals = map[Activity]Seconds{}
	for _, s := range l.Stretches {
		l.USD = rounded(l.USD+s.USD, 1e6)
		if s.What == ActivityLanded {
			l.Landings++
			continue
		}
		began, over := later(s.Began, from), s.Over
		if over.After(to) {
			over = to
		}
		took := seconds(max(0, over.Sub(began)))
		if l.Totals[s.What] += took; s.What.IsWait() {
			l.Waited += took
		} else {
			l.Worked += took
		}
	}
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
