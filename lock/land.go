package lock

import (
	"context"
	"fmt"
	"strconv"

	"lockkeeper"
)

// Settler brings what was decided under a grant to its end, so that the grant
// can be released or handed on. It is called outside of transactions.
type Settler interface {
	Settle(ctx context.Context, grantID string) error
}

// SettleWith tells the manager who settles landings.
func (m *Manager) SettleWith(s Settler) { m.settler.Store(&s) }

// settleTries bounds how often a release settles landings that keep coming.
const settleTries = 8

func (m *Manager) settle(ctx context.Context, id string) error {
	s := m.settler.Load()
	if s == nil {
		return &lockkeeper.RefusedError{Act: "release of " + id, Reason: "changes decided under it may not be done, and whoever asks has no way to the tree",
			Next: "lockkeeper gate recover, where the tree is"}
	}
	return (*s).Settle(ctx, id)
}

// Look hands a grant under which the caller may write to see, together with the
// state it belongs to. It changes nothing.
func (m *Manager) Look(ctx context.Context, id, token string, see func(lockkeeper.Reader, *lockkeeper.Record) error) error {
	if err := validID(id); err != nil {
		return err
	}
	view := m.store.View
	if p, ok := m.store.(lockkeeper.Peeker); ok {
		view = p.Peek
	}
	return view(ctx, func(r lockkeeper.Reader) error {
		rec, err := m.mayWrite(r, r.Now(), id, hashToken(token))
		if err != nil {
			return err
		}
		return see(r, rec)
	})
}

// mayWrite finds a live grant whose lease has not run out, also where its policy
// leaves it to a person to free it then.
func (m *Manager) mayWrite(r lockkeeper.Reader, now lockkeeper.Moment, id string, hash [32]byte) (*lockkeeper.Record, error) {
	rec, err := m.live(r, now, id, hash)
	if err == nil && rec.Expires != 0 && rec.Expires <= now.Lease {
		err = &lockkeeper.NotHeldError{GrantID: id, Reason: fmt.Sprintf("its lease ran out at %s", rec.ExpiresAt.UTC().Format("15:04:05Z")),
			Next: "lockkeeper lock renew " + id}
	}
	return rec, err
}

// Land decides a landing: from this transaction on its changes are done to their
// end. permit sees the grant as it is in that transaction and may refuse. Earlier
// landings of the same grant that are done are marked as committed with it. A
// landing without a grant has no id, and permit sees none.
func (m *Manager) Land(ctx context.Context, id, token string, l *lockkeeper.Landing, permit func(lockkeeper.Reader, *lockkeeper.Record) error, done ...lockkeeper.Ending) error {
	if id != "" {
		if err := validID(id); err != nil {
			return err
		}
	}
	return m.update(ctx, func(s *step) error {
		for _, e := range done {
			if err := s.tx.EndLanding(e, lockkeeper.Committed); err != nil {
				return err
			}
		}
		ev := lockkeeper.Event{Kind: lockkeeper.EventLanded, Actor: lockkeeper.Actor{Name: l.Holder, Kind: lockkeeper.ActorHolder}, GrantID: id, Holder: l.Holder}
		var rec *lockkeeper.Record
		if id != "" {
			var err error
			if rec, err = m.mayWrite(s.tx, s.now, id, hashToken(token)); err != nil {
				return err
			}
			l.GrantID, l.Holder, l.Fence = rec.ID, rec.Holder, rec.Fence
			ev.Actor.Name, ev.Holder = rec.Holder, rec.Holder
		}
		if err := permit(s.tx, rec); err != nil {
			return err
		}
		ev.Locks, ev.Data = landed(l)
		seq, err := s.append(&ev)
		if err != nil {
			return err
		}
		l.Seq, l.State, l.At, l.Taker = seq, lockkeeper.Decided, s.now.Wall, l.Commit
		if err := s.tx.InsertLanding(l); err != nil || rec == nil || rec.State == lockkeeper.StateLanding {
			return err
		}
		next := *rec
		next.State = lockkeeper.StateLanding
		return s.tx.Save(&next)
	})
}

// Committed marks landings of one grant whose changes are all in the tree, on disk,
// by whoever did them. One that somebody else took over is theirs to mark.
func (m *Manager) Committed(ctx context.Context, grantID string, done ...lockkeeper.Ending) error {
	return m.update(ctx, func(s *step) error {
		for _, e := range done {
			if err := s.tx.EndLanding(e, lockkeeper.Committed); err != nil {
				return err
			}
		}
		return s.settled(grantID)
	})
}

// TakeLanding takes a decided landing over, to bring it to its end, and returns it;
// nil when it has ended. From then on nobody who had it before can end it.
func (m *Manager) TakeLanding(ctx context.Context, by lockkeeper.Ending) (taken *lockkeeper.Landing, err error) {
	err = m.update(ctx, func(s *step) error {
		found, err := s.tx.Landings(lockkeeper.LandingQuery{Seq: by.Seq, Open: true})
		if err != nil || len(found) == 0 {
			return err
		}
		taken = found[0]
		taken.Taker = by.Taker
		return s.tx.TakeLanding(by)
	})
	return taken, err
}

// EndLanding ends a landing that by has taken, and records why, if there is anything
// to say. It answers false when somebody else has taken it since.
func (m *Manager) EndLanding(ctx context.Context, by lockkeeper.Ending, state lockkeeper.LandingState, reason string) (ended bool, err error) {
	err = m.update(ctx, func(s *step) error {
		found, err := s.tx.Landings(lockkeeper.LandingQuery{Seq: by.Seq, Open: true})
		if err != nil || len(found) == 0 || found[0].Taker != by.Taker {
			return err
		}
		l := found[0]
		if reason != "" {
			ev := lockkeeper.Event{Kind: lockkeeper.EventFinished, Actor: system, GrantID: l.GrantID, Holder: l.Holder, Reason: reason}
			if state == lockkeeper.Undone {
				ev.Kind = lockkeeper.EventUndone
			}
			ev.Locks, ev.Data = landed(l)
			if err := s.note(&ev); err != nil {
				return err
			}
		}
		ended = true
		if err := s.tx.EndLanding(by, state); err != nil {
			return err
		}
		return s.settled(l.GrantID)
	})
	return ended && err == nil, err
}

// settled makes a grant held as before when no landing under it is open.
func (s *step) settled(grantID string) error {
	if grantID == "" {
		return nil
	}
	rec, err := s.tx.Get(grantID)
	if err != nil || rec == nil || rec.State != lockkeeper.StateLanding {
		return err
	}
	open, err := s.tx.Landings(lockkeeper.LandingQuery{GrantID: grantID, Open: true, Limit: 1})
	if err != nil || len(open) > 0 {
		return err
	}
	next := *rec
	next.State = lockkeeper.StateHeld
	return s.tx.Save(&next)
}

// Note records an event that is not the engine's own. With a key it is recorded
// once in an hour, and told reports whether it was now.
func (m *Manager) Note(ctx context.Context, key string, ev lockkeeper.Event) (told bool, err error) {
	err = m.update(ctx, func(s *step) error {
		if key != "" {
			if before, err := s.tx.Denial(key); err != nil || before != 0 {
				return err
			}
			if err := s.tx.SetDenial(key, 1); err != nil {
				return err
			}
		}
		told = true
		return s.note(&ev)
	})
	return told && err == nil, err
}

// revoke takes a grant away while something decided under it is not known to be
// done: it blocks on, and nothing more can be done with it.
func (s *step) revoke(cur *lockkeeper.Record, why lockkeeper.Event) error {
	why.Reason = string(why.Kind) + ": " + why.Reason
	why.Kind, why.GrantID, why.Holder, why.Locks = lockkeeper.EventRevoking, cur.ID, cur.Holder, cur.Locks
	if err := s.note(&why); err != nil {
		return err
	}
	next := *cur
	next.State = lockkeeper.StateRevoking
	s.leaseFor(&next, 0)
	s.tx.Wake(cur.ID)
	return s.tx.Save(&next)
}

// finishRevoking frees a revoked grant, once what it decided is settled.
func (m *Manager) finishRevoking(ctx context.Context, id string, why lockkeeper.Event) (freed bool, err error) {
	freed, unsettled, err := m.freeRevoked(ctx, id, why)
	if err != nil || !unsettled {
		return freed, err
	}
	if err := m.settle(ctx, id); err != nil {
		return false, &leftError{"what was decided under it is not done", err}
	}
	freed, _, err = m.freeRevoked(ctx, id, why)
	return freed, err
}

func (m *Manager) freeRevoked(ctx context.Context, id string, why lockkeeper.Event) (freed, unsettled bool, err error) {
	err = m.update(ctx, func(s *step) error {
		cur, err := s.tx.Get(id)
		if err != nil || cur == nil || cur.State != lockkeeper.StateRevoking {
			return err
		}
		open, err := s.tx.Landings(lockkeeper.LandingQuery{GrantID: id, Open: true, Limit: 1})
		if unsettled = len(open) > 0; err != nil || unsettled {
			return err
		}
		freed = true
		return s.free(cur, why)
	})
	return freed && err == nil, unsettled, err
}

// landed is what an event tells about a landing: its paths, and which it is.
func landed(l *lockkeeper.Landing) ([]lockkeeper.Lock, map[string]string) {
	locks := make([]lockkeeper.Lock, len(l.Changes))
	for i, c := range l.Changes {
		locks[i] = lockkeeper.Lock{Target: lockkeeper.Target{Path: c.Path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
	}
	data := map[string]string{"commit": l.Commit}
	if l.Seq != 0 {
		data["landing"] = strconv.FormatUint(l.Seq, 10)
	}
	if l.Undoes != 0 {
		data["undoes"] = strconv.FormatUint(l.Undoes, 10)
	}
	return locks, data
}
