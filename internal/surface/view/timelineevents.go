package view

import (
	"cmp"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/sched"
)

// A lockWait is a wait that has not ended, with the grants and requests that cause it.
type lockWait struct {
	LockWait
	blockers []string // ids of grants
}

// see adds an event.
func (d *timelineBuilder) see(ev lockkeeper.Event) {
	switch ev.Kind {
	case lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased, lockkeeper.EventWithdrawn, lockkeeper.EventTimedOut:
		d.unblock(ev)
	}
	id := cmp.Or(sched.ItemID(ev), ev.Holder)
	it := d.items[id]
	if it == nil {
		return
	}
	switch ev.Kind {
	case lockkeeper.EventAcquired:
		d.turn(it, Interval{What: ActivityPreparing, Began: ev.At}, false)
		d.endWait(id, ev.At, false)
	case lockkeeper.EventReleased, lockkeeper.EventForceReleased, lockkeeper.EventFailed:
		d.turn(it, Interval{Began: ev.At}, false)
		d.endWait(id, ev.At, false)
		d.complete(it, ev)
	case lockkeeper.EventExpired, lockkeeper.EventRecovered:
		d.turn(it, Interval{Began: ev.At}, true)
		d.endWait(id, ev.At, false)
	case lockkeeper.EventRequeued:
		d.turn(it, Interval{What: ActivityQueued, Began: ev.At}, false)
	case lockkeeper.EventLanded:
		d.lands[id] = append(d.lands[id], ev.At)
		d.add(it.Workflow, Interval{What: ActivityLanded, Began: ev.At, Over: ev.At, Item: id, Text: "landing " + itoa(ev.Seq)})
	case lockkeeper.EventBlocked:
		if d.since[id].What.IsWait() && d.since[id].What != ActivityBlocked {
			d.turn(it, Interval{What: ActivityBlocked, Began: ev.At}, false)
		}
		d.blocked(it, ev)
	}
}

// complete ends the waits for an item that is completed.
func (d *timelineBuilder) complete(done *lockkeeper.Item, ev lockkeeper.Event) {
	if done.Status != lockkeeper.ItemCompleted || done.CompletedAt.After(ev.At) {
		return
	}
	for _, it := range d.following[done.ID] {
		isOpen := func(id string) bool {
			first := d.items[id]
			return first != nil && (first.CompletedAt.IsZero() || first.CompletedAt.After(ev.At))
		}
		if d.since[it.ID].What == ActivityAfter && !slices.ContainsFunc(it.After, isOpen) {
			d.turn(it, Interval{What: ActivityQueued, Began: ev.At}, false)
		}
	}
}

// unblock ends the waits for a grant or request. An item whose last blocker is gone waits for its
// turn or a slot.
func (d *timelineBuilder) unblock(ev lockkeeper.Event) {
	for id, w := range d.waits {
		i := slices.Index(w.blockers, ev.GrantID)
		if i < 0 {
			continue
		}
		if w.blockers = slices.Delete(w.blockers, i, i+1); len(w.blockers) > 0 {
			continue
		}
		if d.since[id].What == ActivityBlocked {
			d.turn(d.items[id], Interval{What: ActivityQueued, Began: ev.At}, false)
		}
		d.endWait(id, ev.At, false)
	}
}

// label sets the item and phase of an interval. A batch passes through several phases, so
// its phase is unknown here.
func (d *timelineBuilder) label(it *lockkeeper.Item, s Interval) Interval {
	if s.Item = it.ID; it.Unit != string(flow.BatchUnit) {
		s.Phase = it.Phase
	}
	return s
}

// turn ends the current activity of an item and starts the next one, if it has a kind. gone says that
// the process of the item was gone before.
func (d *timelineBuilder) turn(it *lockkeeper.Item, next Interval, gone bool) {
	did := d.since[it.ID]
	did.gone = gone
	d.end(it, did, next.Began)
	d.since[it.ID] = d.label(it, next)
}

// end adds an activity of an item that lasted until a time.
func (d *timelineBuilder) end(it *lockkeeper.Item, did Interval, at time.Time) {
	did.Over = at
	switch w := d.waits[it.ID]; {
	case did.What == "":
	case did.What == ActivityPreparing:
		d.holds = append(d.holds, hold{it, did})
	default:
		if w != nil && did.What == ActivityBlocked {
			did.Text = "for " + few(w.Behind, pathsInLine)
		}
		d.add(it.Workflow, did)
	}
}

func (d *timelineBuilder) blocked(it *lockkeeper.Item, ev lockkeeper.Event) {
	w := d.waits[it.ID]
	if w == nil {
		w = &lockWait{LockWait: LockWait{Work: it.Workflow, Item: it.ID, Began: ev.At, Behind: []string{}, Paths: []string{}}}
		d.waits[it.ID] = w
	}
	w.blockers = nil
	for _, c := range ev.Conflicts {
		if !slices.Contains(w.blockers, c.GrantID) {
			w.blockers = append(w.blockers, c.GrantID)
		}
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
	d.Waits = append(d.Waits, w.LockWait)
}

// trace adds a call of an agent or a check.
func (d *timelineBuilder) trace(e run.CallRecord) {
	it := d.items[e.Item]
	runs := it != nil && it.Status == lockkeeper.ItemDispatched && it.Stage == lockkeeper.StageRunning
	did := Interval{What: ActivityAgent, Began: e.Began, Over: e.Ended, Item: e.Item, Phase: e.Phase}
	switch {
	case e.IsCheck() && !e.Checked && it != nil && it.Status == lockkeeper.ItemDispatched:
		did.What, did.Over, did.Open = ActivityCheck, d.to, true
		if !runs {
			did.What = ActivityQueued // its folder is made before it waits for its slot
		}
	case e.IsCheck():
		did.What = ActivityCheck
	case e.Call != nil:
		did.USD = e.Call.USD
	case runs:
		did.Over, did.Open = d.to, true
	}
	if it != nil {
		e.Ended = did.Over
		d.calls[it.ID] = append(d.calls[it.ID], e)
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

// A hold is a time in which an item held its locks.
type hold struct {
	it *lockkeeper.Item
	Interval
}

// divide adds what an item did while it held its locks and neither an agent nor a check worked. The
// log does not say it: it follows from the calls, from since when they waited for their slots, and
// from the landings.
func (d *timelineBuilder) divide(h hold) {
	at := h.Began
	until := func(what Activity, to time.Time, open bool) {
		if !to.After(at) {
			return
		}
		s := h.Interval
		s.What, s.Began, s.Over, s.Open = what, at, to, open
		if what == ActivityPreparing && slices.ContainsFunc(d.lands[h.it.ID], func(landed time.Time) bool { return !landed.Before(s.Began) && !landed.After(to) }) {
			s.What = ActivityLanding
		}
		d.add(h.it.Workflow, s)
		at = to
	}
	called := false
	for _, e := range d.calls[h.it.ID] {
		if e.Ended.Before(h.Began) || e.Began.After(h.Over) {
			continue
		}
		called = true
		if !e.Asked.IsZero() {
			until(ActivityPreparing, e.Asked, false)
			until(ActivityQueued, e.Began, false)
		}
		until(ActivityPreparing, e.Began, false)
		at = later(at, e.Ended)
	}
	if h.gone && called {
		return // no work was done until the locks were recovered
	}
	rest := ActivityPreparing
	if stage := h.it.Stage; h.Open && (stage == lockkeeper.StageReady || stage == lockkeeper.StageWaiting) {
		rest = ActivityQueued
	}
	until(rest, h.Over, h.Open)
}
