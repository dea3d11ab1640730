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

// An Explanation says why an item has its status, and when it may start.
type Explanation struct {
	Item     lockkeeper.Item   `json:"item"`
	Position int               `json:"position,omitempty"` // position among the items that wait for the same key, from 1
	Locks    []LockWait        `json:"locks,omitempty"`
	Slots    []SlotWait        `json:"slots,omitempty"`    // pools without a free slot
	After    []lockkeeper.Item `json:"after,omitempty"`    // items that must be completed first
	Behind   string            `json:"behind,omitempty"`   // nodes whose copy is behind
	StartsAt time.Time         `json:"starts_at,omitzero"` // an estimate
	Attempts int               `json:"max_attempts"`
	Retries  int               `json:"max_retries"`
}

// A LockWait is one lock that blocks an item.
type LockWait struct {
	lockkeeper.ConflictInfo
	By   *lockkeeper.Item `json:"by,omitempty"`   // the item that holds the lock, if any
	Left time.Duration    `json:"left,omitempty"` // how much longer the item By probably runs; 0: unknown

	Overdue bool `json:"overdue,omitempty"` // the item By has run longer than usual
}

// A SlotWait is a pool without a free slot.
type SlotWait struct {
	Pool  string `json:"pool"`
	Taken int    `json:"taken"`
	Limit int    `json:"limit"`
}

// Why explains an item. name is its id, its key, or its workflow if that is unique.
func (q *Queue) Why(ctx context.Context, name string) (*Explanation, error) {
	return store.Read(ctx, q.store, func(r store.Reader) (*Explanation, error) {
		it, err := q.named(r, name)
		if err != nil {
			return nil, err
		}
		l, err := newExplainer(r)
		if err != nil {
			return nil, err
		}
		return q.explain(l, it)
	})
}

// Blocked explains the waiting items, in the order of the queue.
func (q *Queue) Blocked(ctx context.Context, limit int) ([]*Explanation, error) {
	return store.Read(ctx, q.store, func(r store.Reader) ([]*Explanation, error) { return q.BlockedIn(r, limit) })
}

// BlockedIn returns what Blocked returns, as a Reader sees it.
func (q *Queue) BlockedIn(r store.Reader, limit int) ([]*Explanation, error) {
	l, err := newExplainer(r)
	if err != nil {
		return nil, err
	}
	waiting := slices.DeleteFunc(slices.Clone(l.queued), func(it *lockkeeper.Item) bool { return it.Stage != lockkeeper.StageWaiting })
	slices.SortFunc(waiting, lockkeeper.CompareItems)
	return q.explainAll(l, waiting[:min(limit, len(waiting))])
}

// ExplainIn explains some items, as a Reader sees them.
func (q *Queue) ExplainIn(r store.Reader, items []*lockkeeper.Item) ([]*Explanation, error) {
	l, err := newExplainer(r)
	if err != nil {
		return nil, err
	}
	return q.explainAll(l, items)
}

func (q *Queue) explainAll(l *explainer, items []*lockkeeper.Item) (list []*Explanation, err error) {
	for _, it := range items {
		e, err := q.explain(l, it)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// An explainer holds the facts that all explanations share, read once.
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

// QueuedFor lists the queued items that need a path, by number.
func (q *Queue) QueuedFor(ctx context.Context, path string) ([]*lockkeeper.Item, error) {
	asked := lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
	return store.Read(ctx, q.store, func(r store.Reader) (list []*lockkeeper.Item, err error) {
		queued, err := r.Items(store.ItemQuery{Status: lockkeeper.ItemQueued, Limit: pageSize})
		for _, it := range queued {
			if slices.ContainsFunc(it.Locks, asked.Conflicts) {
				list = append(list, it)
			}
		}
		return list, err
	})
}

// named finds an item by id, key or workflow.
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
	return nil, &lockkeeper.InputError{Field: "item", Value: name, Reason: "ambiguous name of " + strings.Join(ids, ", "), Next: "use one of these ids"}
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
	pools := phasePools(&e.Item)
	if !e.Item.IsHolding() {
		pools = slots(&e.Item)
	}
	for _, pool := range pools {
		n, err := r.SlotsTaken(pool)
		if err != nil {
			return err
		}
		limit := q.limit(pool)
		if on, waits := store.PoolOf(&e.Item, e.Item.WaitsOn); waits && on == pool {
			limit = min(limit, n) // its worker has fewer slots than this process
		}
		if n >= limit && n > 0 {
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

// estimates says how long items of a phase usually run.
type estimates map[string]time.Duration

// An estimate uses the recent completed items, and needs enough of them in a phase.
const (
	recent = 200
	enough = 3
)

// durations returns the median run time of recent items of each phase.
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

// left returns how much longer an item probably runs; 0: unknown. overdue says that it has
// run longer than usual.
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

// estimate sets the position of an item, and when it may start: when its blockers have
// probably ended and the items before it have run.
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
	case len(e.Locks) > 0: // the items before it use the path one after the other
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

// untilSlot returns the time until enough slots of a pool are probably free for the item; 0:
// unknown.
func (l *explainer) untilSlot(e *Explanation) time.Duration {
	pool := e.Slots[0]
	var left []time.Duration
	for _, it := range l.running {
		if slices.Contains(it.Caps, pool.Pool) || slices.Contains(heldSlots(it), pool.Pool) {
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

// Depth returns how many items are queued. Dispatched items that wait for a slot do not
// count.
func (q *Queue) Depth(ctx context.Context) (int, error) {
	c, err := store.Read(ctx, q.store, store.Reader.Census)
	return c.Queued(), err
}

// Active lists the dispatched items, oldest first.
func (q *Queue) Active(ctx context.Context) ([]*lockkeeper.Item, error) {
	return store.Read(ctx, q.store, func(r store.Reader) ([]*lockkeeper.Item, error) {
		return r.Items(store.ItemQuery{Status: lockkeeper.ItemDispatched, Limit: pageSize})
	})
}

// pageSize bounds how many items one read returns.
const pageSize = 10_000
