package view

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// Item is everything known about one item of the queue.
type Item struct {
	Moment
	Why      sched.Explanation `json:"why"`   // includes the item itself
	Waits    []Wait            `json:"waits"` // what the item waits for, the most important first
	State    string            `json:"state"` // ready, blocked, escalated, running, preparing, collecting, between phases, completed or failed
	Since    time.Time         `json:"since"`
	Flow     string            `json:"flow,omitempty"` // empty: the item belongs to no flow
	Unit     string            `json:"unit,omitempty"`
	Kind     string            `json:"kind,omitempty"`   // in a flow: controller, screen, topic or batch
	Part     string            `json:"part,omitempty"`   // the screen, topic or batch
	Worker   *Worker           `json:"worker,omitempty"` // nil: the item does not run, or its worker is gone
	Lost     bool              `json:"lost,omitempty"`   // the item was dispatched, and its worker is gone
	Failed   *FailedDependency `json:"failed_first,omitempty"`
	Log      *Log              `json:"log,omitempty"`
	On       string            `json:"on,omitempty"`    // the machine that carries out its call, if that is another one
	Batch    *BatchDetail      `json:"batch,omitempty"` // batch of the item, with diff, tests, CI and verification
	Calls    []Call            `json:"calls"`           // calls of agents, oldest first
	Cost     Cost              `json:"cost"`
	Events   []Line            `json:"events"` // the newest first
	Grant    *LockStatus       `json:"grant,omitempty"`
	Landings []Landing         `json:"landings"`
	Acts     []Act             `json:"acts"`     // retry, cancel, undo, …
	Problems []string          `json:"problems"` // what could not be read
}

// Wait is one reason why an item waits.
type Wait struct {
	Kind    WaitKind  `json:"kind"`
	Text    string    `json:"text"`
	Blocker *Blocker  `json:"blocker,omitempty"`      // for a lock: who blocks the item
	Since   time.Time `json:"since,omitzero"`         // for a lock: since when the blocker has held it
	Left    Seconds   `json:"left_seconds,omitempty"` // estimated rest of the wait; 0: unknown
	Overdue bool      `json:"overdue,omitempty"`
	Item    string    `json:"item,omitempty"` // item that must complete first
	Name    string    `json:"name,omitempty"` // the name of that item
	Slots   *Slots    `json:"slots,omitempty"`
}

type WaitKind string

// Kinds of waits.
const (
	WaitLock  WaitKind = "lock"
	WaitSlot  WaitKind = "slot"
	WaitAfter WaitKind = "after" // another item
	WaitCopy  WaitKind = "copy"  // a machine with an up-to-date copy
	WaitTurn  WaitKind = "turn"
)

// FailedDependency is a failed item that another one depends on.
type FailedDependency struct {
	Item   string `json:"item"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Limits of the events shown for an item, and of the events searched for them.
const (
	itemEvents     = 30
	itemEventsRead = 5_000
)

// Item explains an item, named by its id, its key, or its name if that is unambiguous.
func (rd *Reader) Item(ctx context.Context, name string) (*Item, error) {
	q, found, err := rd.find(ctx, name)
	if err != nil {
		return nil, err
	}
	why, err := q.Why(ctx, found.ID)
	if err != nil {
		return nil, err
	}
	it := &why.Item
	v := &Item{Why: *why, Waits: []Wait{}, State: ItemState(it), Since: it.StatusSince(), Flow: run.FlowOf(it), Acts: itemActs(it), Calls: []Call{}, Landings: []Landing{}, Problems: []string{}}
	if isWaiting(it) {
		v.Waits = waitsOf(why)
	}
	if w, ok := run.WorkOf(it); ok {
		v.Unit, v.Kind, v.Part = w.Unit, w.Kind, w.Part
	}
	if err := rd.addFromStore(ctx, v, q); err != nil {
		return nil, err
	}
	if err := rd.addFromQueue(ctx, v, q); err != nil {
		return nil, err
	}
	if v.Log, err = rd.log(it, tailFrom); err != nil {
		v.Problems = append(v.Problems, "its output: "+err.Error())
	}
	if v.Flow == "" {
		return v, nil
	}
	return v, rd.addFromFlow(ctx, v)
}

// find returns an item and the queue that it is in.
func (rd *Reader) find(ctx context.Context, name string) (*job.Queue, *lockkeeper.Item, error) {
	q, err := job.Open(rd.project)
	if err != nil {
		return nil, nil, err
	}
	it, err := q.Find(ctx, name)
	if err == nil && it == nil {
		err = &lockkeeper.InputError{Field: "item", Value: name, Reason: "unknown item", Next: "lockkeeper job list"}
	}
	return q, it, err
}

// waitsOf lists what an item that does not run waits for, the most important first. The list
// has at least one entry.
func waitsOf(e *sched.Explanation) (list []Wait) {
	for _, first := range e.After {
		list = append(list, Wait{Kind: WaitAfter, Text: ItemName(&first) + " (" + first.ID + "), which comes first and is " + string(first.Status), Item: first.ID, Name: ItemName(&first)})
	}
	for _, w := range e.Locks {
		b, text := blockerOf(w), w.BlockingPath+", held by "
		if b.Waits {
			text = w.BlockingPath + ", requested earlier by "
		}
		list = append(list, Wait{Kind: WaitLock, Text: text + b.Name, Blocker: &b, Since: w.AcquiredAt, Left: seconds(w.Left), Overdue: w.Overdue})
	}
	for _, s := range e.Slots {
		text := fmt.Sprintf("%s, %d of %d taken", SlotOf(s.Pool), s.Taken, s.Limit)
		list = append(list, Wait{Kind: WaitSlot, Text: text, Slots: &Slots{Pool: s.Pool, Taken: s.Taken, Limit: s.Limit}})
	}
	if e.Behind != "" {
		list = append(list, Wait{Kind: WaitCopy, Text: "a current copy of the tree, as on " + e.Behind})
	}
	if len(list) == 0 {
		list = append(list, Wait{Kind: WaitTurn, Text: "its turn"})
	}
	return list
}

func (rd *Reader) addFromStore(ctx context.Context, v *Item, q *job.Queue) (err error) {
	it := &v.Why.Item
	v.Moment, err = rd.at(ctx, func(r store.Reader) error {
		concerns := func(ev lockkeeper.Event) bool { return sched.ItemID(ev) == it.ID || ev.Holder == it.ID }
		events, err := latest(r, store.EventQuery{After: it.Seq - 1}, itemEvents, itemEventsRead, concerns)
		if err != nil {
			return err
		}
		if v.Events, err = linesOf(r, events, pathsInLine, rd.internalPaths()); err != nil {
			return err
		}
		workers, err := q.WorkersIn(r)
		for _, w := range workers {
			if w.ID == it.Worker && it.Status == lockkeeper.ItemDispatched {
				v.Worker = &Worker{Worker: w, Liveness: rd.liveness(w.Process), Items: []string{it.ID}}
			}
		}
		v.Lost = it.Status == lockkeeper.ItemDispatched && it.Worker != "" && v.Worker == nil
		return err
	})
	return err
}

// addFromQueue adds a failed dependency and the grant.
func (rd *Reader) addFromQueue(ctx context.Context, v *Item, q *job.Queue) error {
	it := &v.Why.Item
	if it.Status == lockkeeper.ItemQueued {
		first, err := q.FailedBefore(ctx, it)
		if err != nil {
			return err
		}
		if first != nil {
			v.Failed = &FailedDependency{Item: first.ID, Name: ItemName(first), Reason: first.Failure.Reason}
		}
	}
	if it.GrantID == "" || it.Status == lockkeeper.ItemCompleted {
		return nil
	}
	e, err := rd.project.Locks.Request(ctx, it.GrantID)
	if err != nil || e == nil {
		return err
	}
	known := names{}
	known.add(it)
	s := rd.lockStatus(*e, known)
	v.Grant = &s
	return nil
}

// addFromFlow adds the batch, the agents' calls and the landings of an item of a flow.
func (rd *Reader) addFromFlow(ctx context.Context, v *Item) error {
	entries, err := rd.journal.All(v.Flow)
	if err != nil {
		v.Problems = append(v.Problems, "calls of agents: "+err.Error())
	}
	for i, e := range run.CallsOf(entries, &v.Why.Item) {
		v.Calls = append(v.Calls, callOf(v.Flow, i+1, e))
		if e.Call != nil {
			v.Cost.add(e.Call.Call)
		}
	}
	v.Cost.TotalUSD = v.Cost.USD
	if err := rd.addCaller(ctx, v); err != nil {
		v.Problems = append(v.Problems, "the machines: "+err.Error())
	}
	if v.Kind != string(flow.BatchUnit) {
		return nil
	}
	p, err := rd.documents(ctx, v.Flow)
	if err != nil {
		return err
	}
	u, known := p.find(v.Unit)
	if !known || u.Unit == nil {
		return nil
	}
	b, known := u.Batch(v.Part)
	if !known {
		return nil
	}
	open, err := rd.openItems(ctx, v.Flow)
	if err != nil {
		return err
	}
	if v.Batch, err = reviewDetail(p, u.Unit, b, stateOf(p.state(u, open[u.name]), b)); err != nil {
		return err
	}
	if b.Landed == nil {
		return nil
	}
	v.Landings, err = rd.landingsOf(ctx, b.Landed.Landings)
	if slices.ContainsFunc(v.Landings, func(ln Landing) bool { return ln.Undo.Refused == "" }) {
		name := v.Unit + "/" + v.Part
		v.Acts = append(v.Acts, Act{Name: "undo", Target: name, Command: "lockkeeper undo " + name})
	}
	return err
}

// openItems returns the incomplete items of a flow, by unit. In the legacy mode there are none.
func (rd *Reader) openItems(ctx context.Context, flowName string) (items map[string][]*lockkeeper.Item, err error) {
	if !rd.usesLocks() {
		return nil, nil
	}
	_, err = rd.at(ctx, func(r store.Reader) (err error) {
		items, err = run.OpenItems(r, flowName)
		return err
	})
	return items, err
}

// itemActs returns the acts that a person can perform on an item.
func itemActs(it *lockkeeper.Item) []Act {
	retry := Act{Name: "retry", Target: it.ID, Command: "lockkeeper job retry " + it.ID, Was: string(it.Status), Note: run.FlowOf(it) != ""}
	cancel := Act{Name: "cancel", Target: it.ID, Command: "lockkeeper job cancel " + it.ID, Was: string(it.Status), Note: true}
	switch {
	case it.Status == lockkeeper.ItemError:
		cancel.Refused = "it has failed and does not run"
	case it.Status == lockkeeper.ItemCompleted:
		retry.Refused, cancel.Refused = "it is completed", "it is completed"
	default:
		retry.Refused = "it has not failed"
		if it.Failure != nil {
			cancel.Refused = it.Failure.Reason
		}
	}
	return []Act{retry, cancel}
}
