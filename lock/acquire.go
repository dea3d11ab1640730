package lock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// TryAcquire grants the whole request now or answers with a *BlockedError that
// lists every conflict. It frees what has lapsed and what dead holders left,
// but never waits for the living.
func (m *Manager) TryAcquire(ctx context.Context, req lockkeeper.Request) (*Grant, error) {
	rec, token, err := m.prepare(req)
	if err != nil {
		return nil, err
	}
	for judged := false; ; {
		began := time.Now()
		a, err := m.try(ctx, rec, judged)
		if err != nil {
			return nil, err
		}
		if a.found == nil {
			return m.handle(rec, token, began), nil
		}
		freed := false
		if !judged {
			if freed, err = m.recoverGone(ctx, a.found, a.now); err != nil {
				return nil, err
			}
		}
		switch {
		case freed:
		case a.told:
			return nil, &lockkeeper.BlockedError{Holder: rec.Holder, Conflicts: conflicts(a.found), Truncated: a.more}
		default:
			judged = true // they live: once more, for the record
		}
	}
}

// attempt is one transaction's try at a request, and what it found in the way:
// nothing, when the request is held.
type attempt struct {
	rec    *store.Record
	judged bool // what was in the way before

	found []store.Overlap
	more  bool // than found
	told  bool // in the record of events, unless it is there already
	now   lockkeeper.Instant
}

// try attempts a grant in one transaction. After an error the request's record
// is not to be used.
func (m *Manager) try(ctx context.Context, rec *store.Record, judged bool) (attempt, error) {
	if granted, err := m.admit(ctx, rec); err != nil || granted {
		return attempt{}, err
	}
	s := m.newStep()
	defer s.recycle()
	s.attempt = attempt{rec: rec, judged: judged}
	err := s.run(ctx, (*step).try)
	return s.attempt, err
}

// try grants the attempted request, or finds what is in its way. A refusal goes
// on record when the blockers have been judged or need no judging: the dead
// refuse nobody.
func (s *step) try() (err error) {
	a := &s.attempt
	a.now = s.now.Lease
	a.found, a.more, err = s.blockers(store.Query{Locks: a.rec.Locks, Before: store.AnyTicket})
	switch {
	case err != nil:
		return err
	case len(a.found) == 0:
		return s.grant(a.rec, store.StateHeld)
	}
	a.told = a.judged || !slices.ContainsFunc(a.found, func(o store.Overlap) bool { return o.Record.Process != nil })
	if a.told {
		return s.deny(a.rec, a.found)
	}
	return nil
}

// admit takes the store's short way to a grant, where it has one.
func (m *Manager) admit(ctx context.Context, rec *store.Record) (granted bool, err error) {
	if m.express == nil {
		return false, nil
	}
	fresh := *rec
	fresh.State = store.StateHeld
	granted, err = m.express.Admit(ctx, &fresh, about(lockkeeper.EventAcquired, rec))
	if granted && err == nil {
		*rec = fresh
	}
	return granted && err == nil, err
}

// deny records a refusal, unless the same request was refused before because of
// the same blockers.
func (s *step) deny(rec *store.Record, found []store.Overlap) error {
	key, sum := denialKey(rec), digest(found)
	told, err := s.tx.Denial(key)
	if err != nil || told == sum {
		return err
	}
	if err := s.tx.SetDenial(key, sum); err != nil {
		return err
	}
	ev := about(lockkeeper.EventDenied, rec)
	ev.GrantID, ev.Conflicts = "", conflicts(found) // the id dies with the refusal
	return s.note(&ev)
}

// denialKey is the same for equal requests of one holder.
func denialKey(rec *store.Record) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00", rec.Holder)
	for _, l := range rec.Locks {
		fmt.Fprintf(h, "%d%d%s\x00", l.Kind, l.Mode, l.Path)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// CheckConflicts lists what would block these locks now, and takes nothing.
// What a request would free on its way, lapsed and dead holders, is left out.
func (m *Manager) CheckConflicts(ctx context.Context, locks []lockkeeper.Lock) ([]lockkeeper.ConflictInfo, error) {
	if err := lockkeeper.ValidateAll(locks); err != nil {
		return nil, err
	}
	var found []store.Overlap
	var now lockkeeper.Instant
	err := m.store.View(ctx, func(r store.Reader) (err error) {
		now = r.Now().Lease
		found, _, err = r.Overlapping(store.Query{
			Locks: lockkeeper.Normalize(locks), Before: store.AnyTicket, Limit: maxConflicts})
		return err
	})
	if err != nil {
		return nil, err
	}
	var live []store.Overlap
	gone := map[uint64]bool{}
	for _, o := range found {
		free, judged := gone[o.Record.Ticket]
		if !judged {
			f, err := m.judge(ctx, o.Record, now)
			if err != nil {
				return nil, err
			}
			free = f != nil && o.Record.State != store.StateRevoking || m.mayExpire(o.Record, now)
			gone[o.Record.Ticket] = free
		}
		if !free {
			live = append(live, o)
		}
	}
	return conflicts(live), nil
}

// IsBlocked reports whether err is the answer to a request that may be granted
// later.
func IsBlocked(err error) bool {
	var b *lockkeeper.BlockedError
	return errors.As(err, &b)
}
