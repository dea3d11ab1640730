package sched

import (
	"context"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Explanation says why an item is where it is, and when it may start.
type Explanation struct {
	Item     lockkeeper.Item   `json:"item"`
	Position int               `json:"position,omitempty"` // in the line it stands in, from 1
	Locks    []LockWait        `json:"locks,omitempty"`
	Slots    []SlotWait        `json:"slots,omitempty"`    // pools without a free slot
	After    []lockkeeper.Item `json:"after,omitempty"`    // what has to be completed first
	Behind   string            `json:"behind,omitempty"`   // nodes whose copy is behind
	StartsAt time.Time         `json:"starts_at,omitzero"` // an estimate
	Attempts int               `json:"max_attempts"`
	Retries  int               `json:"max_retries"`
}

// LockWait is one lock in an item's way.
type LockWait struct {
	lockkeeper.ConflictInfo
	By   *lockkeeper.Item `json:"by,omitempty"`   // the item that holds it, if one does
	Left time.Duration    `json:"left,omitempty"` // how much longer it is likely to; 0: unknown

	Overdue bool `json:"overdue,omitempty"` // it has run for longer than such items usually do
}

// SlotWait is a pool in which an item finds no slot.
type SlotWait struct {
	Pool  string `json:"pool"`
	Taken int    `json:"taken"`
	Limit int    `json:"limit"`
}

// Why explains an item, which is named by its id or its key, or by what it is called
// where that is clear.
func (q *Queue) Why(ctx context.Context, name string) (*Explanation, error) {
	var e *Explanation
	err := q.store.View(ctx, func(r store.Reader) error {
		it, err := q.named(r, name)
		if err != nil {
			return err
		}
		l, err := newExplainer(r)
		if err != nil {
			return err
		}
		e, err = q.explain(l, it)
		return err
	})
	return e, err
}

// Blocked explains the items that are parked, those first that come first.
func (q *Queue) Blocked(ctx context.Context, limit int) (list []*Explanation, err error) {
	err = q.store.View(ctx, func(r store.Reader) (err error) {
		list, err = q.BlockedIn(r, limit)
		return err
	})
	return list, err
}

// BlockedIn is Blocked in a state that the caller reads.
func (q *Queue) BlockedIn(r store.Reader, limit int) (list []*Explanation, err error) {
	l, err := newExplainer(r)
	if err != nil {
		return nil, err
	}
	parked := slices.DeleteFunc(slices.Clone(l.queued), func(it *lockkeeper.Item) bool { return it.Stage != lockkeeper.StageWaiting })
	slices.SortFunc(parked, lockkeeper.CompareItems)
	for _, it := range parked[:min(limit, len(parked))] {
		e, err := q.explain(l, it)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// lookout is what explanations are made from, read once for all of them.
type explainer struct {
	store.Reader
	typical estimates
	queued  []*lockkeeper.Item
	running []*lockkeeper.Item
}

func newExplainer(r store.Reader) (l *explainer, err error) {
	l = &explainer{Reader: r}
	if l.typical, err = durations(r); err != nil {
		return nil, err
	}
	if l.queued, err = r.Items(store.ItemQuery{Status: lockkeeper.ItemQueued, Limit: pageSize}); err != nil {
		return nil, err
	}
	l.running, err = r.Items(store.ItemQuery{Status: lockkeeper.ItemDispatched, Limit: pageSize})
	return l, err
}

// Wanting lists the queued items that want a path, in the order of their numbers.
func (q *Queue) QueuedFor(ctx context.Context, path string) (list []*lockkeeper.Item, err error) {
	asked := lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
	err = q.store.View(ctx, func(r store.Reader) error {
		queued, err := r.Items(store.ItemQuery{Status: lockkeeper.ItemQueued, Limit: pageSize})
		for _, it := range queued {
			if slices.ContainsFunc(it.Locks, asked.Conflicts) {
				list = append(list, it)
			}
		}
		return err
	})
	return list, err
}

// named finds an item as people name it.
func (q *Queue) named(r store.Reader, name string) (*lockkeeper.Item, error) {
	it, notFound := find(r, name)
	if notFound == nil {
		return it, nil
	}
	var called []*lockkeeper.Item
	for _, status := range []lockkeeper.ItemStatus{lockkeeper.ItemDispatched, lockkeeper.ItemQueued, lockkeeper.ItemError} {
		list, err := r.Items(store.ItemQuery{Status: status, Limit: pageSize})
		if err != nil {
			return nil, err
		}
		for _, it := range list {
			if it.Workflow == name {
				called = append(called, it)
			}
		}
	}
	switch len(called) {
	case 0:
		return nil, notFound
	case 1:
		return called[0], nil
	}
	var ids []string
	for _, it := range called {
		ids = append(ids, it.ID)
	}
	return nil, &lockkeeper.InputError{Field: "item", Value: name, Reason: "several items are called so: " + strings.Join(ids, ", "), Next: "name one by its id"}
}

func (q *Queue) explain(l *explainer, it *lockkeeper.Item) (*Explanation, error) {
	e := &Explanation{Item: *it, Attempts: q.opt.MaxAttempts, Retries: q.opt.MaxLockRetries, Behind: strings.TrimSpace(it.AvoidNode)}
	if it.Stage != lockkeeper.StageReady && it.Stage != lockkeeper.StageWaiting {
		return e, nil
	}
	for _, id := range it.After {
		first, err := l.Item(id)
		if err != nil {
			return nil, err
		}
		if first != nil && first.Status != lockkeeper.ItemCompleted {
			e.After = append(e.After, *first)
		}
	}
	if err := q.explainSlots(l, e); err != nil {
		return nil, err
	}
	if !it.IsHolding() {
		if err := q.explainLocks(l, e, l.typical); err != nil {
			return nil, err
		}
	}
	q.estimate(l, e)
	return e, nil
}

func (q *Queue) explainSlots(r store.Reader, e *Explanation) error {
	pools := e.Item.Pools
	if !e.Item.IsHolding() {
		pools = slots(&e.Item)
	}
	for _, pool := range pools {
		n, err := r.SlotsTaken(pool)
		if err != nil {
			return err
		}
		if limit, _ := q.opt.Limits.Of(pool); n >= limit {
			e.Slots = append(e.Slots, SlotWait{pool, n, limit})
		}
	}
	return nil
}

// maxShown bounds how many blockers an explanation lists.
const maxShown = 20

func (q *Queue) explainLocks(r store.Reader, e *Explanation, typical estimates) error {
	query := store.Query{Locks: e.Item.Locks, Before: store.AnyTicket, Limit: maxShown}
	if e.Item.GrantID != "" {
		own, err := r.Get(e.Item.GrantID)
		if err != nil {
			return err
		}
		if own != nil {
			query.Before, query.Except = own.Ticket, own.Ticket
		}
	}
	found, _, err := r.Overlapping(query)
	if err != nil {
		return err
	}
	told := map[string]bool{}
	for i, c := range lock.Conflicts(found) {
		if told[c.GrantID+c.BlockingPath] {
			continue
		}
		told[c.GrantID+c.BlockingPath] = true
		wait := LockWait{ConflictInfo: c}
		if id := found[i].Record.Metadata[lock.ItemKey]; id != "" {
			if wait.By, err = r.Item(id); err != nil {
				return err
			}
		}
		if wait.By != nil {
			wait.Left, wait.Overdue = typical.left(wait.By, r.Now().Wall)
		}
		e.Locks = append(e.Locks, wait)
	}
	return nil
}

// estimates are how long items of a phase usually run.
type estimates map[string]time.Duration

// Estimates are made of that many completed items at most, and for a phase of so many
// at least.
const (
	recent = 200
	enough = 3
)

// durations is the median of what items of each phase took lately.
func durations(r store.Reader) (estimates, error) {
	done, err := r.Items(store.ItemQuery{Status: lockkeeper.ItemCompleted, Latest: true, Limit: recent})
	if err != nil {
		return nil, err
	}
	took := map[string][]time.Duration{}
	for _, it := range done {
		took[it.Phase] = append(took[it.Phase], it.CompletedAt.Sub(it.DispatchedAt))
	}
	out := estimates{}
	for phase, list := range took {
		if len(list) < enough {
			continue
		}
		slices.Sort(list)
		out[phase] = list[len(list)/2]
	}
	return out, nil
}

// left is how much longer an item is likely to run; 0: nobody knows. overdue says that
// it has run for longer than is usual.
func (e estimates) left(it *lockkeeper.Item, now time.Time) (left time.Duration, overdue bool) {
	usual := e[it.Phase]
	if usual == 0 || it.Status != lockkeeper.ItemDispatched {
		return usual, false
	}
	if left = usual - now.Sub(it.DispatchedAt); left <= 0 {
		return 0, true
	}
	return left, false
}

// estimate says which place in its line an item has, and when it may start: when what
// is in its way has likely ended, and what is before it in the line has had its turn.
func (q *Queue) estimate(l *explainer, e *Explanation) {
	var ahead time.Duration
	for _, it := range l.queued {
		if it.ID == e.Item.ID || it.Stage != e.Item.Stage || it.WaitsOn != e.Item.WaitsOn || lockkeeper.CompareItems(it, &e.Item) > 0 {
			continue
		}
		e.Position++
		ahead += l.typical[it.Phase]
	}
	e.Position++
	var wait time.Duration
	for _, l := range e.Locks {
		if l.Left == 0 {
			return
		}
		wait = max(wait, l.Left)
	}
	switch {
	case len(e.Locks) > 0: // those before it take the path one after the other
		wait += ahead
	case len(e.Slots) > 0:
		left := l.untilSlot(e)
		if left == 0 {
			return
		}
		wait = max(wait, left)
	}
	if len(e.After) == 0 && wait > 0 {
		e.StartsAt = l.Now().Wall.Add(wait)
	}
}

// untilSlot is when so many of a pool's slots have likely been given back that the
// item has its turn; 0: nobody knows.
func (l *explainer) untilSlot(e *Explanation) time.Duration {
	pool := e.Slots[0]
	var left []time.Duration
	for _, it := range l.running {
		if slices.Contains(slots(it), pool.Pool) {
			rest, _ := l.typical.left(it, l.Now().Wall)
			left = append(left, rest)
		}
	}
	if len(left) == 0 || slices.Contains(left, 0) {
		return 0
	}
	slices.Sort(left)
	turns, place := (e.Position-1)/len(left), (e.Position-1)%len(left)
	return left[place] + time.Duration(turns)*l.typical[e.Item.Phase]
}
