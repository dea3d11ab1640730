package lock

import (
	"lockkeeper"
	"lockkeeper/store"
)

// promote examines the requests that waited on a ticket that left, until no further ticket
// leaves.
func (tx *Tx) promote() error {
	for i := 0; i < len(tx.departed); i++ { // it grows as waiting requests lapse
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
