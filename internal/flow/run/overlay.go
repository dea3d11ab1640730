package run

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/store"
)

// A Work identifies the work that an item of a flow is for.
type Work struct {
	Unit string `json:"unit"`
	Kind string `json:"kind"`           // controller, screen, topic, batch or question
	Part string `json:"part,omitempty"` // the screen, topic, batch or question; empty: the unit
}

// Name returns the unit, or unit/part.
func (w Work) Name() string {
	if w.Part == "" {
		return w.Unit
	}
	return w.Unit + "/" + w.Part
}

// WorkOf returns the work of an item. It returns false if the item belongs to no flow.
func WorkOf(it *lockkeeper.Item) (Work, bool) {
	d, err := workOf(it)
	if err != nil || FlowOf(it) == "" {
		return Work{}, false
	}
	return d.Work, true
}

// OpenItems lists the items of a flow that are not completed, by unit.
func OpenItems(r store.Reader, flowName string) (map[string][]*lockkeeper.Item, error) {
	list, err := openItems(r, rootPrefix+flowName)
	units := map[string][]*lockkeeper.Item{}
	for _, it := range list {
		if d, err := workOf(it); err == nil {
			units[d.Unit] = append(units[d.Unit], it)
		}
	}
	return units, err
}

// openItems lists the items of a root that are not completed.
func openItems(r store.Reader, root string) (list []*lockkeeper.Item, err error) {
	const page = 1_000
	for _, status := range []lockkeeper.ItemStatus{lockkeeper.ItemQueued, lockkeeper.ItemDispatched, lockkeeper.ItemError} {
		for after, more := uint64(0), true; more; {
			some, err := r.Items(store.ItemQuery{After: after, Status: status, Limit: page})
			if err != nil {
				return nil, err
			}
			for _, it := range some {
				after = it.Seq
				if it.Root == root {
					list = append(list, it)
				}
			}
			more = len(some) == page
		}
	}
	return list, nil
}

// An Overlay combines the documents of units with the state of their items in the queue.
type Overlay struct {
	Flow    flow.Flow
	Screens map[string][]flow.ManifestScreen // the screens of each unit, in the screens flow

	failed func(unit, part string) error // returns the failure of work in this process; nil: none is known
}

// Unit returns the state of a unit. The caller passes the unit's items that are not completed.
func (s Overlay) Unit(u *progress.Unit, items []*lockkeeper.Item) UnitState {
	current := map[Work]*lockkeeper.Item{}
	for _, it := range items {
		if d, err := workOf(it); err == nil && isCurrent(u, it, d) {
			current[d.Work] = it
		}
	}
	at := UnitState{Name: u.Name, WorkState: WorkState{Status: u.Status(), next: u.Phase()}}
	s.overlay(current, Work{Unit: u.Name, Kind: string(flow.Controller)}, &at.WorkState)
	for _, b := range u.Batches {
		at.Batches = append(at.Batches, BatchState{ID: b.ID, WorkState: WorkState{Status: b.Status, next: b.Next}, Blocked: b.Blocked, kind: flow.BatchUnit})
	}
	if u.Plan == nil {
		for _, screen := range s.Screens[u.Name] {
			at.Batches = append(at.Batches, BatchState{ID: screen.Name, WorkState: WorkState{Status: at.Status, next: u.Phase()}, kind: flow.Screen})
		}
	}
	for i := range at.Batches {
		b := &at.Batches[i]
		s.overlay(current, Work{Unit: u.Name, Kind: string(b.kind), Part: b.ID}, &b.WorkState)
	}
	if u.Plan != nil {
		at.follow()
	}
	at.fail()
	return at
}

// follow gives a unit the status of its first batch that can continue. Its documents have the
// status of the first batch that is not complete, which may have failed.
func (u *UnitState) follow() {
	if u.Item != "" || u.Status == flow.Failed {
		return
	}
	can := func(b BatchState) bool {
		return b.Status != flow.Failed && !flow.IsDone(b.Status) && len(b.Blocked) == 0
	}
	left := func(b BatchState) bool { return !flow.IsDone(b.Status) }
	first, next := slices.IndexFunc(u.Batches, left), slices.IndexFunc(u.Batches, can)
	if first >= 0 && next >= 0 && u.Batches[first].Status == flow.Failed {
		b := u.Batches[next]
		u.Status, u.Pending, u.Since = b.Status, b.Pending, b.Since
	}
}

// fail marks a unit as failed if a batch failed and no other batch can continue.
func (u *UnitState) fail() {
	failed := slices.IndexFunc(u.Batches, func(b BatchState) bool { return b.Status == flow.Failed })
	busy := slices.ContainsFunc(u.Batches, func(b BatchState) bool {
		return b.Status != flow.Failed && !flow.IsDone(b.Status) && len(b.Blocked) == 0
	})
	if failed >= 0 && u.Status != flow.Failed && !busy {
		u.Status, u.Error = flow.Failed, u.Batches[failed].ID+": "+u.Batches[failed].Error
	}
}

// overlay replaces the state of one piece of work with the state of its item.
func (s Overlay) overlay(items map[Work]*lockkeeper.Item, w Work, at *WorkState) {
	if s.failed != nil {
		if failure := s.failed(w.Unit, w.Part); failure != nil {
			at.Status, at.Error = flow.Failed, failure.Error()
		}
	}
	it := items[w]
	if it == nil {
		return
	}
	at.Item, at.Since, at.Note = it.ID, it.StatusSince(), cmp.Or(it.Note, it.Aside())
	switch it.Status {
	case lockkeeper.ItemQueued:
		at.Pending, at.Status = it.Phase, flow.Queued
	case lockkeeper.ItemDispatched:
		at.Status = StatusIn(s.Flow, it.Phase)
	case lockkeeper.ItemError:
		at.Status = flow.Failed
		if it.Failure != nil {
			phase := it.Failure.Phase + ": "
			at.Error = phase + strings.TrimPrefix(it.Failure.Reason, phase)
		}
	}
}

// StatusIn returns the status of work in a phase, by the scheduler's name of the phase.
func StatusIn(f flow.Flow, phase string) string {
	known, fixing, ok := f.PhaseQueued(phase)
	switch {
	case ok && fixing:
		return known.Fixing
	case ok:
		return known.Status
	}
	return phase
}

// Rest estimates the cost of the remaining work. For each remaining phase of each unit, batch and
// screen it adds the average cost of that phase in these calls. A unit without a plan counts as
// one batch.
func Rest(f flow.Flow, calls []flow.Call, units []UnitState) (left float64) {
	sum, count := map[string]float64{}, map[string]int{}
	for _, c := range calls {
		sum[c.Phase] += c.USD
		count[c.Phase]++
	}
	add := func(next string, kinds ...flow.Unit) {
		begun := false
		for _, phase := range f.Phases {
			begun = begun || phase.Name == next
			if begun && phase.Executor == flow.Agent && slices.Contains(kinds, phase.Unit) && count[phase.Name] > 0 {
				left += sum[phase.Name] / float64(count[phase.Name])
			}
		}
	}
	for _, u := range units {
		if flow.IsDone(u.Status) {
			continue
		}
		planned := false
		for _, b := range u.Batches {
			planned = planned || b.kind == flow.BatchUnit
			if !flow.IsDone(b.Status) {
				add(b.next, b.kind)
			}
		}
		if !planned {
			add(u.next, flow.Controller, flow.BatchUnit)
		}
	}
	return left
}

// FailuresIn lists the failed work of units that is still due, in the order in which it was queued.
// The argument items has the incomplete items of each unit, and the function unit reads a unit.
func FailuresIn(f flow.Flow, items map[string][]*lockkeeper.Item, unit func(name string) (*progress.Unit, error)) ([]Failure, error) {
	list := []Failure{}
	for name, of := range items {
		of = slices.DeleteFunc(slices.Clone(of), func(it *lockkeeper.Item) bool { return it.Status != lockkeeper.ItemError || it.Failure == nil })
		if len(of) == 0 {
			continue
		}
		u, err := unit(name)
		if err != nil {
			return nil, err
		}
		for _, it := range of {
			if d, err := workOf(it); err == nil && isCurrent(u, it, d) {
				list = append(list, Failure{Item: it.ID, Work: d.Work, Phase: phaseNamed(f, it.Failure.Phase), Reason: it.Failure.Reason, At: it.CompletedAt, seq: it.Seq})
			}
		}
	}
	slices.SortFunc(list, func(a, b Failure) int { return cmp.Compare(a.seq, b.seq) })
	return list, nil
}

// A Failure is failed work of a flow that waits until a person retries it.
type Failure struct {
	Item string `json:"item"`
	Work
	Phase  string    `json:"phase"` // the phase of the flow in which the work failed
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`

	seq uint64 // the item's sequence number
}

// Failures lists the work of a flow that failed and is still due, in the order in which it was
// queued.
func Failures(ctx context.Context, st store.Store, t *progress.Tracker, f flow.Flow) ([]Failure, error) {
	var items map[string][]*lockkeeper.Item
	err := st.View(ctx, func(r store.Reader) (err error) {
		items, err = OpenItems(r, f.Name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return FailuresIn(f, items, func(name string) (*progress.Unit, error) { return t.Unit(ctx, name) })
}

// phaseNamed returns the phase of a flow for a phase name of the scheduler. Review and landing
// belong to the last phase of a batch.
func phaseNamed(f flow.Flow, scheduled string) string {
	if scheduled == progress.ReviewPhase || scheduled == progress.LandPhase {
		return f.LastOfBatch()
	}
	if phase, _, ok := f.PhaseQueued(scheduled); ok {
		return phase.Name
	}
	return scheduled
}

// isCurrent reports whether an item is for the current phase, topic or plan of its unit. An item
// of an earlier plan, or of a phase that was redone, is not current.
func isCurrent(u *progress.Unit, it *lockkeeper.Item, d workItem) bool {
	if u.Excluded != nil {
		return false
	}
	switch d.Kind {
	case string(flow.BatchUnit):
		b, known := u.Batch(d.Part)
		return known && b.Next != "" && strings.Contains(it.Key, "@"+b.Digest[:8])
	case topicUnit:
		for _, topic := range u.Topics {
			if topic.Slug == d.Part {
				return topic.State == progress.Pending
			}
		}
		return false
	case string(flow.Screen):
		return u.Plan == nil
	case questionUnit:
		_, open := u.OpenQuestion(d.Part)
		return open
	}
	what, _, _ := strings.Cut(it.Key[strings.LastIndex(it.Key, "/")+1:], "#")
	return what == u.Phase()
}
