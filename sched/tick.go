package sched

import (
	"context"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// reservation is how long the place of an escalated item in the engine's line outlives
// whoever keeps it. One that was promised its locks may wait for a slot that long.
const (
	reservation = 15 * time.Minute
	keepEvery   = reservation / 3
)

// Tick does what is due: it puts back what vanished workers left, escalates what has
// waited too long for locks or a slot, counts lock waits that are over, and keeps reservations. It
// returns how long until something is due again; 0: nothing is. Any number of workers
// may tick.
func (q *Queue) Tick(ctx context.Context) (next time.Duration, err error) {
	if _, err := q.locks.Recover(ctx); err != nil {
		return 0, err
	}
	err = q.locks.Within(ctx, func(a *lock.Act) error {
		tx, now := a.Tx(), a.Now().Lease
		if err := q.recover(a); err != nil {
			return err
		}
		due, err := tx.ItemsToCheck(now, examineAtOnce)
		if err != nil {
			return err
		}
		for _, it := range due {
			if err := q.attend(a, it.ID); err != nil {
				return err
			}
		}
		if err := q.rousePools(tx); err != nil {
			return err
		}
		if next, err = q.escalateSlotWaits(a); err != nil {
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

// recover puts back dispatched items whose grant is gone: the engine has freed it,
// after it had ended what was left of the work.
func (q *Queue) recover(a *lock.Act) error {
	for after := uint64(0); ; {
		page, err := a.Tx().Items(store.ItemQuery{Status: lockkeeper.ItemDispatched, After: after, Limit: examineAtOnce})
		if err != nil {
			return err
		}
		for _, it := range page {
			after = it.Seq
			rec, err := a.Tx().Get(it.GrantID)
			if err != nil {
				return err
			}
			if rec != nil {
				continue
			}
			if err := q.putBack(a, it.Clone(), "its worker "+it.Worker+" is gone, or lost the grant"); err != nil {
				return err
			}
		}
		if len(page) < examineAtOnce {
			return nil
		}
	}
}

// attend looks at an item whose time has come: one that is parked, or one that was
// promised its locks and waits for a slot.
func (q *Queue) attend(a *lock.Act, id string) error {
	tx, now := a.Tx(), a.Now().Lease
	it, err := tx.Item(id)
	if err != nil || it.CheckAt == 0 || it.CheckAt > now { // looking at one before it has roused it
		return err
	}
	it = it.Clone()
	if it.HasReserved() {
		if err := a.Keep(it.GrantID, reservation); err != nil {
			return err
		}
	}
	switch {
	case it.WaitsOn == onCopy: // some node's copy may have caught up
		it.AvoidNode = ""
		return store.WakeItem(tx, it)
	case !store.IsOnLock(it.WaitsOn): // it was promised its locks, and waits for a slot
		it.CheckAt = now.Add(keepEvery)
		return tx.SaveItem(it)
	}
	found, err := a.InTheWay(it.Locks, it.GrantID)
	if err != nil {
		return err
	}
	// To look frees what has lapsed, and so may have roused this one.
	if it, err = tx.Item(id); err != nil || it.Stage != lockkeeper.StageWaiting {
		return err
	}
	it = it.Clone()
	if len(found) == 0 {
		return store.WakeItem(a.Tx(), it)
	}
	if lock.Digest(found) != it.Blockers { // the wait begins anew
		return q.repark(a, it, found)
	}
	switch {
	case it.FirstSince != 0 && it.GrantID == "" && it.FirstFor(now) >= q.opt.EscalateAfter: // for the first time, or after it lost its place
		return q.escalate(a, it, found)
	case now.Until(it.Since) >= q.opt.LockTimeout:
		if it.Retries++; it.Retries > q.opt.MaxLockRetries {
			return q.giveUpOn(a, it, found)
		}
		return q.repark(a, it, found)
	}
	q.setDue(it, now) // it has come to lead its line, or was kept in it
	return a.Tx().SaveItem(it)
}

// repark lets the wait of a blocked item begin anew, at what blocks it now. One that
// has a place in the engine's line stays there.
func (q *Queue) repark(a *lock.Act, it *lockkeeper.Item, found []store.Overlap) error {
	tx, left := a.Tx(), it.WaitsOn
	it.StopFirst(a.Now().Lease)
	if it.GrantID != "" {
		if err := q.parkInLine(tx, it, left); err != nil {
			return err
		}
		if sum := lock.Digest(found); sum != it.Blockers {
			it.Blockers, it.Retries = sum, 0
		}
		return tx.SaveItem(it)
	}
	if err := q.parkOnLock(a, it, found); err != nil {
		return err
	}
	if err := tx.SaveItem(it); err != nil {
		return err
	}
	return store.StartFirst(tx, left)
}

// escalate moves up an item that locks block, and reserves these locks in the engine's wait
// list.
func (q *Queue) escalate(a *lock.Act, it *lockkeeper.Item, found []store.Overlap) error {
	id, err := a.Reserve(q.request(it, nil), reservation)
	if err != nil {
		return err
	}
	left := it.WaitsOn
	it.StopFirst(a.Now().Lease)
	it.GrantID = id
	if err := q.parkInLine(a.Tx(), it, store.OnGrant(id)); err != nil {
		return err
	}
	if err := q.moveUp(a, it, "blocked by locks for "+it.Blocked.Round(time.Second).String(), found); err != nil {
		return err
	}
	if err := a.Tx().SaveItem(it); err != nil {
		return err
	}
	return store.StartFirst(a.Tx(), left)
}

// giveUpOn ends an item that the same holders have blocked for too long.
func (q *Queue) giveUpOn(a *lock.Act, it *lockkeeper.Item, found []store.Overlap) error {
	waited := time.Duration(it.Retries) * q.opt.LockTimeout
	if err := q.dropReservation(a, it, lockkeeper.Event{Kind: lockkeeper.EventTimedOut, Actor: system, Conflicts: lock.Conflicts(found)}); err != nil {
		return err
	}
	return q.fail(a, it, lockkeeper.Failure{Reason: "blocked by locks for too long", Conflicts: lock.Conflicts(found), Waited: waited, Attempts: it.Retries})
}

// dropReservation takes an item that is not dispatched out of the engine's line.
func (q *Queue) dropReservation(a *lock.Act, it *lockkeeper.Item, ev lockkeeper.Event) error {
	if it.GrantID == "" {
		return nil
	}
	_, err := a.Free(it.GrantID, ev)
	it.GrantID = ""
	return err
}

// rousePools rouses who is parked on a pool that has free slots: somebody may have
// raised its limit.
func (q *Queue) rousePools(tx store.Tx) error {
	keys, err := tx.WaitKeys(store.OnPool(""))
	if err != nil {
		return err
	}
	for _, key := range keys {
		full, err := q.full(tx, []string{strings.TrimPrefix(key, store.OnPool(""))})
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
