package lock

import (
	"lockkeeper"
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
			if s.mayExpire(w) {
				if err := s.expire(w); err != nil {
					return err
				}
				continue
			}
			if _, err := s.examine(w, lockkeeper.StatePromoted); err != nil {
				return err
			}
		}
	}
	return nil
}

// examine grants a waiting request in the given state when nothing stands in
// its way any more, and otherwise parks it on its latest blocker. It returns
// what it found in the way.
func (s *step) examine(w *lockkeeper.Record, state lockkeeper.State) ([]lockkeeper.Overlap, error) {
	found, _, err := s.blockers(lockkeeper.Query{Locks: w.Locks, Before: w.Ticket, Except: w.Ticket})
	if err != nil {
		return nil, err
	}
	next := *w
	if len(found) == 0 {
		s.tx.Wake(w.ID)
		return nil, s.grant(&next, state)
	}
	sum := digest(found)
	next.ParkedOn = found[0].Record.Ticket
	if sum != w.Blockers {
		next.Blockers = sum
		if err := s.tell(&next, found); err != nil {
			return nil, err
		}
	}
	if next.ParkedOn == w.ParkedOn && next.Blockers == w.Blockers {
		return found, nil
	}
	return found, s.tx.Save(&next)
}

// tell records that a request waits, and for whom.
func (s *step) tell(w *lockkeeper.Record, found []lockkeeper.Overlap) error {
	return s.note(lockkeeper.Event{
		Kind: lockkeeper.EventWaiting, Actor: lockkeeper.Actor{Name: w.Holder, Kind: lockkeeper.ActorHolder},
		GrantID: w.ID, Holder: w.Holder, Locks: w.Locks, Conflicts: conflicts(found),
	})
}
