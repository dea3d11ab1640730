package lock

import (
	"cmp"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// enter grants a new request, in the given state, or puts it at the end of the wait list.
func (tx *Tx) enter(rec *store.Record, free store.State) ([]store.Overlap, error) {
	found, _, err := tx.blockers(store.Query{Locks: rec.Locks, Before: store.AnyTicket})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, tx.grant(rec, free)
	}
	rec.State, rec.AcquiredAt = store.StateWaiting, tx.Now().Wall
	rec.WaitsOn, rec.Blockers = found[0].Record.Ticket, Digest(found)
	tx.renewWait(rec)
	ev := about(lockkeeper.EventWaiting, rec)
	ev.Conflicts = Conflicts(found)
	seq, err := tx.Append(ev)
	if err != nil {
		return nil, err
	}
	rec.Ticket = seq
	return found, tx.Insert(rec)
}

// proceed confirms a promoted request, or renews a waiting one. last has the blockers of its
// last examination.
func (tx *Tx) proceed(rec *store.Record, last []store.Overlap) ([]store.Overlap, error) {
	if rec.State != store.StateWaiting {
		rec.State = store.StateHeld
		tx.lease(rec)
		return nil, tx.Save(rec)
	}
	found, err := tx.stillBlocked(rec, last)
	if err != nil {
		return nil, err
	}
	if found == nil {
		if found, err = tx.examine(rec, store.StateHeld); err != nil || len(found) == 0 {
			return nil, err
		}
	}
	tx.renewWait(rec)
	return found, tx.Save(rec)
}

// renewWait renews the lease of a waiting record and records the process that waits: a dead
// one must not block others.
func (tx *Tx) renewWait(rec *store.Record) {
	tx.leaseFor(rec, tx.m.opt.WaitLease)
	rec.Process = cmp.Or(rec.Process, tx.m.opt.Self)
}

// stillBlocked returns an updated copy of the blockers last if the request still waits on the same
// blocker and that blocker has not left. The caller then needs no search. Otherwise it returns nil.
func (tx *Tx) stillBlocked(rec *store.Record, last []store.Overlap) ([]store.Overlap, error) {
	if len(last) == 0 || last[0].Record.Ticket != rec.WaitsOn {
		return nil, nil
	}
	blocker, err := tx.Get(last[0].Record.ID)
	if err != nil || blocker == nil || blocker.Ticket != rec.WaitsOn || tx.m.mayExpire(blocker, tx.Now().Lease) {
		return nil, err
	}
	found := slices.Clone(last)
	for i := range found {
		if found[i].Record.Ticket == rec.WaitsOn {
			found[i].Record = blocker
		}
	}
	return found, nil
}

// untilLapse returns the time until just after the blocker that a request waits on lapses; 0
// if it does not. It also returns 0 for a lapsed blocker that is still there: it cannot be
// freed now, and polling at once would spin.
func (tx *Tx) untilLapse(found []store.Overlap) time.Duration {
	if len(found) == 0 {
		return 0
	}
	at, ok := tx.m.lapsesAt(found[0].Record)
	if !ok || at <= tx.Now().Lease {
		return 0
	}
	return at.Until(tx.Now().Lease) + time.Millisecond
}

// promote examines the requests that waited on a ticket that left, until no further ticket
// leaves.
func (tx *Tx) promote() error {
	for i := 0; i < len(tx.departed); i++ { // the list grows as waiting requests lapse
		waiters, err := tx.Waiters(tx.departed[i])
		if err != nil {
			return err
		}
		for _, w := range waiters {
			if tx.m.mayExpire(w, tx.Now().Lease) {
				if err := tx.expire(w); err != nil {
					return err
				}
				continue
			}
			next := clone(w)
			found, err := tx.examine(next, store.StatePromoted)
			if err == nil && len(found) > 0 && (next.WaitsOn != w.WaitsOn || next.Blockers != w.Blockers) {
				err = tx.Save(next)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// examine grants a waiting request, in the given state, if nothing blocks it any more.
// Otherwise it returns the blockers and lets the record, which the caller saves, wait on
// the latest of them.
func (tx *Tx) examine(w *store.Record, state store.State) ([]store.Overlap, error) {
	found, _, err := tx.blockers(store.Query{Locks: w.Locks, Before: w.Ticket, Except: w.Ticket})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		tx.Wake(w.ID)
		if tx.AnyWaitsOnLock() {
			if _, err := store.WakeFirst(tx, store.OnGrant(w.ID)); err != nil {
				return nil, err
			}
		}
		return nil, tx.grant(w, state)
	}
	w.WaitsOn = found[0].Record.Ticket
	if sum := Digest(found); sum != w.Blockers {
		w.Blockers = sum
		ev := about(lockkeeper.EventWaiting, w)
		ev.Conflicts = Conflicts(found)
		return found, tx.note(ev)
	}
	return found, nil
}
