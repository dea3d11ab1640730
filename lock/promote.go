package lock

import (
	"lockkeeper"
	"lockkeeper/store"
)

// promote examines everyone who was parked on a ticket that left, until nobody
// more has left.
func (s *step) promote() error {
	for i := 0; i < len(s.departed); i++ { // it grows as others lapse
		parked, err := s.tx.Parked(s.departed[i])
		if err != nil {
			return err
		}
		for _, w := range parked {
			if s.m.mayExpire(w, s.now.Lease) {
				if err := s.expire(w); err != nil {
					return err
				}
				continue
			}
			next := clone(w)
			found, err := s.examine(next, store.StatePromoted)
			if err == nil && len(found) > 0 && (next.WaitsOn != w.WaitsOn || next.Blockers != w.Blockers) {
				err = s.tx.Save(next)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// examine grants a waiting request in the given state when nothing stands in
// its way any more. Otherwise it changes the record, which the caller saves, to
// be parked on its latest blocker, and returns what it found in the way.
func (s *step) examine(w *store.Record, state store.State) ([]store.Overlap, error) {
	found, _, err := s.blockers(store.Query{Locks: w.Locks, Before: w.Ticket, Except: w.Ticket})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		s.tx.Wake(w.ID)
		if s.tx.AnyWaitsOnLock() {
			if _, err := store.WakeFirst(s.tx, store.OnGrant(w.ID)); err != nil {
				return nil, err
			}
		}
		return nil, s.grant(w, state)
	}
	w.WaitsOn = found[0].Record.Ticket
	if sum := digest(found); sum != w.Blockers {
		w.Blockers = sum
		ev := about(lockkeeper.EventWaiting, w)
		ev.Conflicts = conflicts(found)
		return found, s.note(&ev)
	}
	return found, nil
}
