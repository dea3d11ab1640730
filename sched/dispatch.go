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

// examineAtOnce bounds how many items one transaction looks at.
const examineAtOnce = 64

// Claim gives a worker the first item that can start now, dispatched to it; nil when
// there is none.
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

// taken is what a transaction took from the queue.
type taken struct {
	item *lockkeeper.Item // nil: nothing
	held *lock.PendingGrant
	more bool // it stopped before it had looked at all that is ready
}

// take serves lifecycles that wait for a slot, and dispatches the first item that can
// start to a worker: of some roots, where "" is those that need none. Without a worker
// it only serves.
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

// first is the first ready item of some roots; "" is those that need none.
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

// serve gives a lifecycle the slots of its next phase, or parks it.
func (q *Queue) serve(tx *lock.Tx, it *lockkeeper.Item) error {
	full, err := q.full(tx, it.Pools)
	if err != nil || full != "" {
		waitOnPool(it, full)
		return err
	}
	it.Enter(lockkeeper.StageRunning)
	it.Blocked = 0
	tx.Wake(store.ItemWakeID(it.ID))
	return q.takeAll(tx, it, it.Pools)
}

// takeAll takes a slot of each of some pools for an item. A test run is told which one
// of its pool it has.
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

// examine dispatches a queued item, or parks it on the first thing in its way.
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
	full, err := q.full(tx, slots(it))
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
	it.Status = lockkeeper.ItemDispatched
	it.GrantID, it.Worker, it.DispatchedAt, it.Note = held.ID(), w.ID, tx.Now().Wall, ""
	it.Attempts++
	it.Retries, it.Blocked, it.Blockers = 0, 0, 0
	if err := q.takeAll(tx, it, slots(it)); err != nil {
		return nil, err
	}
	return held, q.advance(tx, it)
}

// advance lets the turns of a rank follow what is dispatched.
func (q *Queue) advance(tx store.Tx, it *lockkeeper.Item) error {
	last, err := tx.Turn(everyProject, it.Rank)
	if err != nil || last >= it.Turn {
		return err
	}
	return tx.SetTurn(everyProject, it.Rank, it.Turn)
}

// lock takes the locks of an item, or parks it on what is in their way.
func (q *Queue) lock(tx *lock.Tx, it *lockkeeper.Item, w *lockkeeper.Worker) (*lock.PendingGrant, error) {
	if it.GrantID != "" { // reserved
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

// request is what an item asks of the lock engine.
func (q *Queue) request(it *lockkeeper.Item, p *lockkeeper.Process) lockkeeper.Request {
	return lockkeeper.Request{Holder: it.ID, Locks: it.Locks, Policy: it.Policy, Process: p,
		Metadata: map[string]string{lock.ItemKey: it.ID, "workflow": it.Workflow, "phase": it.Phase}}
}

// parkOnLock parks an item on the latest of its blockers. Once for each change of
// blockers that is told.
func (q *Queue) waitOnLock(tx *lock.Tx, it *lockkeeper.Item, found []store.Overlap) error {
	if err := q.waitInList(tx, it, store.OnLock(found[0].Asked.Mode, found[0].Lock.Target)); err != nil {
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

// parkInLine parks an item on a lock. Whoever leads the line counts the time: those
// behind wait for their turn.
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

// setDue says when somebody has to look at an item that is parked on a lock.
func (q *Queue) setCheckAt(it *lockkeeper.Item, now lockkeeper.Instant) {
	it.CheckAt = it.Since.Add(q.opt.LockTimeout)
	switch {
	case it.HasReserved():
		it.CheckAt = min(it.CheckAt, now.Add(keepEvery))
	case it.FirstSince != 0:
		it.CheckAt = min(it.CheckAt, it.FirstSince.Add(max(0, q.opt.EscalateAfter-it.Blocked)))
	}
}

// about is an event about an item.
func about(kind lockkeeper.EventKind, it *lockkeeper.Item) lockkeeper.Event {
	return lockkeeper.Event{Kind: kind, Actor: system, Holder: it.ID, Locks: it.Locks,
		Data: map[string]string{lock.ItemKey: it.ID, "workflow": it.Workflow, "phase": it.Phase}}
}

var system = lockkeeper.Actor{Name: "lockkeeper", Kind: lockkeeper.ActorSystem}

// park takes an item out of the ready line.
func wait(it *lockkeeper.Item, key string) {
	it.Enter(lockkeeper.StageWaiting)
	it.WaitsOn = key
}

// parkOnPool parks an item on a pool without a free slot. Whether it was ready or parked, it
// waits for a slot, and its time goes on.
func waitOnPool(it *lockkeeper.Item, pool string) {
	led := it.FirstSince
	wait(it, store.OnPool(pool))
	it.FirstSince = led
}

// onCopy is the key of items that a node could not run because its copy is behind.
// They are looked at again, by every node, after copyCheck.
const (
	onCopy    = "copy:behind"
	copyCheck = 15 * time.Second
)

// slots are the pools of which an item needs a slot to start.
func slots(it *lockkeeper.Item) []string { return slices.Concat(it.Caps, it.Pools) }

// full is the first of some pools without a free slot; empty: none.
func (q *Queue) full(r store.Reader, pools []string) (string, error) {
	for _, pool := range pools {
		n, err := r.SlotsTaken(pool)
		if err != nil {
			return "", err
		}
		if limit, _ := q.opt.Limits.Of(pool); n >= limit {
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

// giveSlots gives slots back, and rouses the first who needs each of them.
func returnSlots(tx store.Tx, pools []string) error {
	if err := takeSlots(tx, pools, -1); err != nil {
		return err
	}
	for _, pool := range pools {
		if _, err := store.WakeFirst(tx, store.OnPool(pool)); err != nil {
			return err
		}
	}
	return nil
}

// passOn rouses the next item on what one was roused by, unless that one has taken
// it: the next may be able to use it.
func (q *Queue) wakeNext(tx store.Tx, it *lockkeeper.Item, key string) error {
	if key == "" || it.WaitsOn == key {
		return nil
	}
	if pool, ok := strings.CutPrefix(key, store.OnPool("")); ok {
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

// job makes the job of what a transaction took.
func (q *Queue) job(t taken) *Job {
	if t.held == nil {
		return nil
	}
	return &Job{Item: *t.item, Grant: q.locks.Handle(t.held), q: q}
}

// errLost says that an item is not this worker's any more.
func errLost(it *lockkeeper.Item) error {
	return &lockkeeper.NotHeldError{GrantID: it.GrantID, Reason: fmt.Sprintf("item %s was given to somebody else, or ended, meanwhile", it.ID), Next: "lockkeeper why " + it.ID}
}
