package sched

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// examineAtOnce bounds how many items one transaction examines.
const examineAtOnce = 64

// Dispatch dispatches the first item that can start now to a worker. It returns nil if no item can start.
func (q *Queue) Dispatch(ctx context.Context, w lockkeeper.Worker) (*Job, error) {
	for {
		var t taken
		err := q.locks.Update(ctx, func(tx *lock.Tx) (err error) {
			t, err = q.take(tx, &w, w.TakesRoots())
			return err
		})
		if err != nil || !t.more {
			return q.job(t), err
		}
	}
}

// taken is the item that a transaction dispatched.
type taken struct {
	item *lockkeeper.Item // nil: none
	held *lock.PendingGrant
	more bool // the search stopped before it had examined all ready items
}

// take gives slots to dispatched items that wait for their next phase. It also dispatches the
// first queued item of the given roots that can start to a worker. The root "" stands for items
// without a root. Without a worker take dispatches nothing.
func (q *Queue) take(tx *lock.Tx, w *lockkeeper.Worker, roots []string) (taken, error) {
	for range examineAtOnce {
		it, err := first(tx, roots)
		if err != nil || it == nil || w == nil && !it.IsHolding() {
			return taken{}, err
		}
		next := it.Clone()
		var held *lock.PendingGrant
		if it.IsHolding() {
			err = q.serve(tx, next)
		} else {
			held, err = q.examine(tx, next, w)
		}
		if err == nil {
			err = tx.SaveItem(next)
		}
		if err == nil {
			err = q.wakeNext(tx, next, it.WokenBy)
		}
		if err != nil || held != nil {
			return taken{item: next, held: held}, err
		}
	}
	return taken{more: true}, nil
}

// first returns the first ready item of some roots.
func first(r store.Reader, roots []string) (best *lockkeeper.Item, err error) {
	for _, root := range roots {
		it, err := r.FirstReady(root)
		if err != nil {
			return nil, err
		}
		if it != nil && (best == nil || lockkeeper.CompareItems(it, best) < 0) {
			best = it
		}
	}
	return best, nil
}

// serve gives a dispatched item the slots of its next phase, or lets it wait for one.
func (q *Queue) serve(tx *lock.Tx, it *lockkeeper.Item) error {
	pools := phasePools(it)
	full, err := q.full(tx, pools)
	if err != nil || full != "" {
		waitOnPool(it, full)
		return err
	}
	prepared := heldSlots(it)
	it.Enter(lockkeeper.StageRunning)
	it.Pools, it.Blocked = pools, 0
	tx.Wake(store.ItemWakeID(it.ID))
	if err := q.takeAll(tx, it, pools); err != nil {
		return err
	}
	return returnSlots(tx, prepared)
}

// takeAll takes one slot of each pool for an item. A test run gets the number of its slot.
func (q *Queue) takeAll(tx store.Tx, it *lockkeeper.Item, pools []string) error {
	if slices.Contains(pools, PoolTest) {
		running, err := tx.Items(store.ItemQuery{Status: lockkeeper.ItemDispatched, Limit: pageSize})
		if err != nil {
			return err
		}
		it.Slot = 1
		for slices.ContainsFunc(running, func(other *lockkeeper.Item) bool { return other.ID != it.ID && other.Slot == it.Slot }) {
			it.Slot++
		}
	}
	return takeSlots(tx, pools, 1)
}

// examine dispatches a queued item, or lets it wait on the first thing that blocks it.
func (q *Queue) examine(tx *lock.Tx, it *lockkeeper.Item, w *lockkeeper.Worker) (*lock.PendingGrant, error) {
	if slices.Contains(strings.Fields(it.AvoidNode), w.Node) {
		stopSlotWait(it, tx.Now().Lease)
		wait(it, onCopy)
		it.CheckAt = tx.Now().Lease.Add(copyCheck)
		return nil, nil
	}
	open, err := unfinished(tx, it)
	if err != nil || open != "" {
		stopSlotWait(it, tx.Now().Lease)
		wait(it, store.OnItem(open))
		return nil, err
	}
	ahead := w.Ahead && slices.Contains(it.Pools, PoolAgent)
	needs := slots(it)
	if ahead {
		needs = append(slices.Clone(it.Caps), PoolPrepare)
	}
	full, err := q.full(tx, needs)
	if err != nil || full != "" {
		waitOnPool(it, full)
		if it.HasReserved() {
			it.CheckAt = tx.Now().Lease.Add(keepEvery)
		}
		return nil, err
	}
	held, err := q.lock(tx, it, w)
	if err != nil || held == nil {
		return nil, err
	}
	it.Enter(lockkeeper.StageRunning)
	if ahead {
		it.Stage, it.Pools = lockkeeper.StagePreparing, append(slices.Clone(it.Pools), PoolPrepare)
	}
	it.Status = lockkeeper.ItemDispatched
	it.GrantID, it.Worker, it.DispatchedAt, it.Note = held.ID(), w.ID, tx.Now().Wall, ""
	it.Attempts++
	it.Retries, it.Blocked, it.Blockers = 0, 0, 0
	if err := q.takeAll(tx, it, needs); err != nil {
		return nil, err
	}
	return held, q.advance(tx, it)
}

// advance records the turn of a dispatched item as the last one of its rank.
func (q *Queue) advance(tx store.Tx, it *lockkeeper.Item) error {
	last, err := tx.Turn(everyProject, it.Rank)
	if err != nil || last >= it.Turn {
		return err
	}
	return tx.SetTurn(everyProject, it.Rank, it.Turn)
}

// lock acquires the locks of an item, or lets it wait on a blocker.
func (q *Queue) lock(tx *lock.Tx, it *lockkeeper.Item, w *lockkeeper.Worker) (*lock.PendingGrant, error) {
	if it.GrantID != "" { // the item has reserved its locks
		held, gone, err := tx.Confirm(it.GrantID, w.Process)
		switch {
		case err != nil || held != nil:
			return held, err
		case !gone:
			return nil, q.waitInList(tx, it, store.OnGrant(it.GrantID))
		}
		it.GrantID = ""
	}
	held, found, err := tx.Try(q.request(it, w.Process))
	if err != nil || held != nil {
		return held, err
	}
	return nil, q.waitOnLock(tx, it, found)
}

func (q *Queue) request(it *lockkeeper.Item, p *lockkeeper.Process) lockkeeper.Request {
	return lockkeeper.Request{Holder: it.ID, Locks: it.Locks, Policy: it.Policy, Process: p, Kept: true,
		Metadata: map[string]string{lock.ItemKey: it.ID, "workflow": it.Workflow, "phase": it.Phase}}
}

// waitOnLock lets an item wait on the latest of its blockers. An escalated item that was overtaken
// reserves its locks, and waits on the reservation. It appends an event for each change of blockers.
func (q *Queue) waitOnLock(tx *lock.Tx, it *lockkeeper.Item, found []store.Overlap) error {
	key := store.InRoot(store.OnLock(found[0].Asked.Mode, found[0].Lock.Target), it.Root)
	if isOvertaken(it, found) {
		id, err := tx.Reserve(q.request(it, nil), reservation)
		if err != nil {
			return err
		}
		it.GrantID, key = id, store.OnGrant(id)
	}
	if err := q.waitInList(tx, it, key); err != nil {
		return err
	}
	sum := lock.Digest(found)
	if sum == it.Blockers {
		return nil
	}
	it.Blockers, it.Retries = sum, 0
	ev := about(lockkeeper.EventBlocked, it)
	ev.Conflicts = lock.Conflicts(found)
	_, err := tx.Append(ev)
	return err
}

// waitInList lets an item wait on a lock. Only the first item on a key counts its waiting
// time; the others wait for their turn.
func (q *Queue) waitInList(tx store.Tx, it *lockkeeper.Item, key string) error {
	now := tx.Now().Lease
	leader, err := tx.FirstWaiting(key)
	if err != nil {
		return err
	}
	stopSlotWait(it, now)
	wait(it, key)
	it.Since = now
	if leader == nil || leader.ID == it.ID || lockkeeper.CompareItems(it, leader) < 0 {
		it.FirstSince = now
	}
	q.setCheckAt(it, now)
	if leader == nil || leader.ID == it.ID || it.FirstSince == 0 {
		return nil
	}
	overtaken := leader.Clone()
	overtaken.StopFirst(now)
	return tx.SaveItem(overtaken)
}

// setCheckAt sets when a tick must check an item that waits on a lock.
func (q *Queue) setCheckAt(it *lockkeeper.Item, now lockkeeper.Instant) {
	it.CheckAt = it.Since.Add(q.opt.LockTimeout)
	switch {
	case it.HasReserved():
		it.CheckAt = min(it.CheckAt, now.Add(keepEvery))
	case it.FirstSince != 0 && !it.Escalated:
		it.CheckAt = min(it.CheckAt, it.FirstSince.Add(max(0, q.opt.EscalateAfter-it.Blocked)))
	}
}

func about(kind lockkeeper.EventKind, it *lockkeeper.Item) lockkeeper.Event {
	return lockkeeper.Event{Kind: kind, Actor: system, Holder: it.ID, Locks: it.Locks,
		Data: map[string]string{lock.ItemKey: it.ID, "workflow": it.Workflow, "phase": it.Phase}}
}

var system = lockkeeper.System()

func wait(it *lockkeeper.Item, key string) {
	it.Enter(lockkeeper.StageWaiting)
	it.WaitsOn = key
}

// waitOnPool lets an item wait on a pool without a free slot. Its waiting time continues: a
// ready item waits for a slot too.
func waitOnPool(it *lockkeeper.Item, pool string) {
	led := it.FirstSince
	wait(it, store.InRoot(store.OnPool(pool), it.Root))
	it.FirstSince = led
}

// onCopy is the key of items that a node could not run because its copy is behind. Every
// node examines them again after copyCheck.
const (
	onCopy    = "copy:behind"
	copyCheck = 15 * time.Second
)

func slots(it *lockkeeper.Item) []string { return slices.Concat(it.Caps, it.Pools) }

// heldSlots returns the pools of a dispatched item whose slots it holds, in addition to its caps. An item
// that does not run holds at most a slot of PoolPrepare.
func heldSlots(it *lockkeeper.Item) []string {
	switch {
	case it.Stage == lockkeeper.StageRunning:
		return it.Pools
	case slices.Contains(it.Pools, PoolPrepare):
		return []string{PoolPrepare}
	}
	return nil
}

// phasePools returns the pools that an item needs in its phase.
func phasePools(it *lockkeeper.Item) []string {
	return slices.DeleteFunc(slices.Clone(it.Pools), func(pool string) bool { return pool == PoolPrepare })
}

// full returns the first of some pools without a free slot; empty: none.
func (q *Queue) full(r store.Reader, pools []string) (string, error) {
	for _, pool := range pools {
		n, err := r.SlotsTaken(pool)
		if err != nil {
			return "", err
		}
		if n >= q.limit(pool) {
			return pool, nil
		}
	}
	return "", nil
}

func takeSlots(tx store.Tx, pools []string, n int) error {
	for _, pool := range pools {
		if err := tx.TakeSlots(pool, n); err != nil {
			return err
		}
	}
	return nil
}

// returnSlots returns slots and wakes the first items that wait for each.
func returnSlots(tx store.Tx, pools []string) error {
	if err := takeSlots(tx, pools, -1); err != nil {
		return err
	}
	for _, pool := range pools {
		if err := store.WakePool(tx, pool); err != nil {
			return err
		}
	}
	return nil
}

// wakeNext wakes the next item that waits on a key, if the item that the key woke did not
// take what was freed.
func (q *Queue) wakeNext(tx store.Tx, it *lockkeeper.Item, key string) error {
	if key == "" || it.WaitsOn == key {
		return nil
	}
	if pool, ok := store.PoolOf(it, key); ok {
		full, err := q.full(tx, []string{pool})
		if err != nil || full != "" {
			return err
		}
	} else if store.IsOnLock(key) && !strings.HasPrefix(key, store.OnGrant("")) {
		if it.Status == lockkeeper.ItemDispatched && slices.ContainsFunc(it.Locks, func(l lockkeeper.Lock) bool { return store.KeepsWaiting(l, key) }) {
			return nil
		}
	} else {
		return nil
	}
	_, err := store.WakeFirst(tx, key)
	return err
}

func (q *Queue) job(t taken) *Job {
	if t.held == nil {
		return nil
	}
	return &Job{Item: *t.item, Grant: q.locks.Handle(t.held), q: q}
}

// errLost says that an item no longer belongs to this worker.
func errLost(it *lockkeeper.Item) error {
	return &lockkeeper.NotHeldError{GrantID: it.GrantID, Reason: fmt.Sprintf("item %s has ended or was dispatched to another worker meanwhile", it.ID), Next: "lockkeeper why " + it.ID}
}
