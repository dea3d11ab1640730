package sched

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// reservation is how long a reservation lasts without renewal. An item whose locks were
// granted may wait for a slot that long.
const (
	reservation = 15 * time.Minute
	keepEvery   = reservation / 3
)

// Tick returns the items of dead workers to the queue, escalates items that have waited too
// long, counts lock timeouts and renews reservations. It returns the time until the next
// tick is needed; 0: none is. Any number of workers may tick.
func (q *Queue) Tick(ctx context.Context) (next time.Duration, err error) {
	if _, err := q.locks.Recover(ctx); err != nil {
		return 0, err
	}
	err = q.locks.Update(ctx, func(tx *lock.Tx) error {
		now := tx.Now().Lease
		if err := q.recover(tx); err != nil {
			return err
		}
		items, err := tx.ItemsToCheck(now, examineAtOnce)
		if err != nil {
			return err
		}
		for _, it := range items {
			if err := q.check(tx, it.ID); err != nil {
				return err
			}
		}
		if err := q.wakePools(tx); err != nil {
			return err
		}
		if next, err = q.escalateSlotWaits(tx); err != nil {
			return err
		}
		at, err := tx.NextCheck()
		if err == nil && at != 0 {
			next = earlier(next, max(at.Until(now), time.Millisecond))
		}
		return err
	})
	return next, err
}

// recover returns dispatched items to the queue whose grant is gone. The engine freed the
// grant after it had ended the processes of the work.
func (q *Queue) recover(tx *lock.Tx) error {
	return eachItem(tx, lockkeeper.ItemDispatched, func(it *lockkeeper.Item) error {
		rec, err := tx.Get(it.GrantID)
		if err != nil || rec != nil {
			return err
		}
		return q.requeue(tx, it.Clone(), "its worker "+it.Worker+" is gone, or lost the grant")
	})
}

// eachItem visits the items with a status by number. visit may give them another status.
func eachItem(r store.Reader, status lockkeeper.ItemStatus, visit func(*lockkeeper.Item) error) error {
	for after := uint64(0); ; {
		page, err := r.Items(store.ItemQuery{Status: status, After: after, Limit: examineAtOnce})
		if err != nil {
			return err
		}
		for _, it := range page {
			after = it.Seq
			if err := visit(it); err != nil {
				return err
			}
		}
		if len(page) < examineAtOnce {
			return nil
		}
	}
}

// check checks an item whose CheckAt has come: a waiting item, or one that has its locks
// reserved and waits for a slot.
func (q *Queue) check(tx *lock.Tx, id string) error {
	now := tx.Now().Lease
	it, err := tx.Item(id)
	if err != nil || it.CheckAt == 0 || it.CheckAt > now { // an earlier check has woken the item
		return err
	}
	it = it.Clone()
	if it.HasReserved() {
		if err := tx.Keep(it.GrantID, reservation); err != nil {
			return err
		}
	}
	switch {
	case it.WaitsOn == onCopy: // a node may have updated its copy
		it.AvoidNode = ""
		return store.WakeItem(tx, it)
	case !store.IsOnLock(it.WaitsOn): // the item has reserved its locks and waits for a slot
		it.CheckAt = now.Add(keepEvery)
		return tx.SaveItem(it)
	}
	found, err := tx.Blockers(it.Locks, it.GrantID)
	if err != nil {
		return err
	}
	// Blockers frees lapsed grants and so may have woken this item.
	if it, err = tx.Item(id); err != nil || it.Stage != lockkeeper.StageWaiting {
		return err
	}
	it = it.Clone()
	if len(found) == 0 {
		return store.WakeItem(tx, it)
	}
	if lock.Digest(found) != it.Blockers || it.GrantID == "" && isOvertaken(it, found) { // the blockers have changed, so the wait begins again
		return q.waitAgain(tx, it, found)
	}
	switch {
	case it.FirstSince != 0 && !it.Escalated && it.FirstFor(now) >= q.opt.EscalateAfter:
		return q.escalate(tx, it, found)
	case now.Until(it.Since) >= q.opt.LockTimeout:
		if it.Retries++; it.Retries > q.opt.MaxLockRetries {
			return q.giveUpOn(tx, it, found)
		}
		return q.waitAgain(tx, it, found)
	}
	q.setCheckAt(it, now) // the item became the first, or its reservation was renewed
	return tx.SaveItem(it)
}

// waitAgain restarts the wait of a blocked item, on its current blocker. An item with a reservation
// keeps waiting for the reservation.
func (q *Queue) waitAgain(tx *lock.Tx, it *lockkeeper.Item, found []store.Overlap) error {
	left := it.WaitsOn
	it.StopFirst(tx.Now().Lease)
	if it.GrantID != "" {
		if err := q.waitInList(tx, it, left); err != nil {
			return err
		}
		if sum := lock.Digest(found); sum != it.Blockers {
			it.Blockers, it.Retries = sum, 0
		}
		return tx.SaveItem(it)
	}
	if err := q.waitOnLock(tx, it, found); err != nil {
		return err
	}
	if err := tx.SaveItem(it); err != nil {
		return err
	}
	return store.StartFirst(tx, left)
}

// escalate escalates an item that locks block.
func (q *Queue) escalate(tx *lock.Tx, it *lockkeeper.Item, found []store.Overlap) error {
	left := it.WaitsOn
	it.StopFirst(tx.Now().Lease)
	if err := q.moveUp(tx, it, "blocked by locks for "+it.Blocked.Round(time.Second).String(), found); err != nil {
		return err
	}
	if err := q.waitOnLock(tx, it, found); err != nil {
		return err
	}
	if err := tx.SaveItem(it); err != nil {
		return err
	}
	return store.StartFirst(tx, left)
}

// giveUpOn fails an item that the same holders have blocked for too long.
func (q *Queue) giveUpOn(tx *lock.Tx, it *lockkeeper.Item, found []store.Overlap) error {
	waited := time.Duration(it.Retries) * q.opt.LockTimeout
	if err := q.dropReservation(tx, it, lockkeeper.Event{Kind: lockkeeper.EventTimedOut, Actor: system, Conflicts: lock.Conflicts(found)}); err != nil {
		return err
	}
	return q.fail(tx, it, lockkeeper.Failure{Reason: "blocked by locks for too long", Conflicts: lock.Conflicts(found), Waited: waited, Attempts: it.Retries})
}

// dropReservation removes the reservation of an item that is not dispatched.
func (q *Queue) dropReservation(tx *lock.Tx, it *lockkeeper.Item, ev lockkeeper.Event) error {
	if it.GrantID == "" {
		return nil
	}
	_, err := tx.Free(it.GrantID, ev)
	it.GrantID = ""
	return err
}

// wakePools wakes the items that wait on a pool with free slots: its limit may have been
// raised.
func (q *Queue) wakePools(tx store.Tx) error {
	keys, err := tx.WaitKeys(store.OnPool(""))
	if err != nil {
		return err
	}
	for _, key := range keys {
		it, err := tx.FirstWaiting(key)
		if err != nil {
			return err
		}
		pool, _ := store.PoolOf(it, key)
		full, err := q.full(tx, []string{pool})
		if err != nil {
			return err
		}
		if full != "" {
			continue
		}
		if _, err := store.WakeFirst(tx, key); err != nil {
			return err
		}
	}
	return nil
}
