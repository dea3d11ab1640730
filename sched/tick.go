package sched

import (
	"context"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

// reservation is how long the place of an escalated item in the engine's line outlives
// whoever keeps it.
const reservation = 2 * time.Minute

// Tick does what is due: it puts back what vanished workers left, escalates what has
// been blocked for long, counts lock waits that are over, and keeps reservations. It
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
		due, err := tx.DueItems(now, examineAtOnce)
		if err != nil {
			return err
		}
		for _, it := range due {
			next := it.Clone()
			if err := q.attend(a, next); err != nil {
				return err
			}
			// Looking for its blockers may have freed what it was parked on, and roused
			// nobody but the item itself.
			if err := q.passOn(tx, next, it.ParkedOn); err != nil {
				return err
			}
		}
		if err := q.keepReservations(a); err != nil {
			return err
		}
		if err := q.rousePools(tx); err != nil {
			return err
		}
		at, err := tx.NextDue()
		if err == nil && at != 0 {
			next = max(at.Until(now), time.Millisecond)
		}
		return err
	})
	return next, err
}

// recover puts back dispatched items whose grant is gone: the engine has freed it,
// after it had ended what was left of the work.
func (q *Queue) recover(a *lock.Act) error {
	for after := uint64(0); ; {
		page, err := a.Tx().Items(lockkeeper.ItemQuery{Status: lockkeeper.ItemDispatched, After: after, Limit: examineAtOnce})
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

// attend looks at a parked item whose time has come.
func (q *Queue) attend(a *lock.Act, it *lockkeeper.Item) error {
	now := a.Now().Lease
	if !lockkeeper.IsOnLock(it.ParkedOn) { // its copy may have caught up
		it.Shuns = ""
		return q.rouse(a.Tx(), it)
	}
	found, err := a.InTheWay(it.Locks, it.GrantID)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return q.rouse(a.Tx(), it)
	}
	blocked := it.Blocked + now.Until(it.Since)
	changed := lock.Digest(found) != it.Blockers
	switch {
	case !it.Escalated && blocked >= q.opt.EscalateAfter:
		it.Blocked = blocked
		return q.escalate(a, it, found)
	case changed, now.Until(it.Since) < q.opt.LockTimeout:
	default:
		it.Retries++
		if it.Retries > q.opt.MaxLockRetries {
			return q.giveUpOn(a, it, blocked, found)
		}
	}
	it.Blocked = blocked
	on := it.ParkedOn
	if err := q.parkOnLock(a, it, found); err != nil {
		return err
	}
	if it.GrantID != "" {
		it.ParkedOn = on
	}
	return a.Tx().SaveItem(it)
}

// rouse makes a parked item ready.
func (q *Queue) rouse(tx lockkeeper.Tx, it *lockkeeper.Item) error {
	it.Unpark(tx.Now().Lease)
	tx.Wake(lockkeeper.QueueBell)
	return tx.SaveItem(it)
}

// escalate reserves the locks of an item in the engine's line.
func (q *Queue) escalate(a *lock.Act, it *lockkeeper.Item, found []lockkeeper.Overlap) error {
	id, err := a.Reserve(q.request(it, nil), reservation)
	if err != nil {
		return err
	}
	it.Escalated, it.GrantID, it.Blockers = true, id, lock.Digest(found)
	park(it, lockkeeper.OnGrant(id))
	q.count(it, a.Now().Lease)
	ev := about(lockkeeper.EventEscalated, it)
	ev.Reason = "blocked by locks for " + it.Blocked.Round(time.Second).String()
	ev.Conflicts = lock.Conflicts(found)
	if _, err := a.Note(ev); err != nil {
		return err
	}
	return a.Tx().SaveItem(it)
}

// giveUpOn ends an item that has been blocked for too long.
func (q *Queue) giveUpOn(a *lock.Act, it *lockkeeper.Item, waited time.Duration, found []lockkeeper.Overlap) error {
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

// keepReservations renews the places of escalated items, and the grant that the first
// ready one was promised.
func (q *Queue) keepReservations(a *lock.Act) error {
	keys, err := a.Tx().ParkedKeys(lockkeeper.OnGrant(""))
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := a.Keep(strings.TrimPrefix(key, lockkeeper.OnGrant("")), reservation); err != nil {
			return err
		}
	}
	first, err := a.Tx().FirstReady("")
	if err != nil || first == nil || first.GrantID == "" {
		return err
	}
	return a.Keep(first.GrantID, reservation)
}

// rousePools rouses who is parked on a pool that has free slots: somebody may have
// raised its limit.
func (q *Queue) rousePools(tx lockkeeper.Tx) error {
	keys, err := tx.ParkedKeys(lockkeeper.OnPool(""))
	if err != nil {
		return err
	}
	for _, key := range keys {
		full, err := q.full(tx, []string{strings.TrimPrefix(key, lockkeeper.OnPool(""))})
		if err != nil {
			return err
		}
		if full != "" {
			continue
		}
		if _, err := lockkeeper.Rouse(tx, key); err != nil {
			return err
		}
	}
	return nil
}
