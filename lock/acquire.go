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

// TryAcquire grants the whole request or returns a *BlockedError that lists every
// conflict. It frees grants that have lapsed or whose holders are dead, and never waits
// for live ones.
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
		case a.recorded:
			return nil, &lockkeeper.BlockedError{Holder: rec.Holder, Conflicts: Conflicts(a.found), Truncated: a.more}
		default:
			judged = true // the blockers are alive: try again, and record the refusal
		}
	}
}

// An attempt is one transaction that tries to grant a request.
type attempt struct {
	rec    *store.Record
	judged bool // the blockers were checked before and are alive

	found    []store.Overlap // the blockers; none if the request was granted
	more     bool            // there are more blockers than those in found
	recorded bool            // the log has the refusal
	now      lockkeeper.Instant
}

// try grants a request in one transaction, or returns its blockers. After an error the
// record of the request must not be used.
func (m *Manager) try(ctx context.Context, rec *store.Record, judged bool) (attempt, error) {
	if granted, err := m.tryFastPath(ctx, rec); err != nil || granted {
		return attempt{}, err
	}
	tx := m.newTx()
	defer tx.recycle()
	tx.attempt = attempt{rec: rec, judged: judged}
	err := tx.update(ctx, (*Tx).tryAttempt)
	return tx.attempt, err
}

// tryAttempt is the transaction of an attempt. It records a refusal only if the blockers were
// found alive before, or have no process that could be dead.
func (tx *Tx) tryAttempt() (err error) {
	a := &tx.attempt
	a.now = tx.Now().Lease
	a.found, a.more, err = tx.blockers(store.Query{Locks: a.rec.Locks, Before: store.AnyTicket})
	switch {
	case err != nil:
		return err
	case len(a.found) == 0:
		return tx.grant(a.rec, store.StateHeld)
	}
	a.recorded = a.judged || !slices.ContainsFunc(a.found, func(o store.Overlap) bool { return o.Record.Process != nil })
	if a.recorded {
		return tx.deny(a.rec, a.found)
	}
	return nil
}

// tryFastPath grants a request with the fast path of the store, if it has one.
func (m *Manager) tryFastPath(ctx context.Context, rec *store.Record) (granted bool, err error) {
	if m.fastPath == nil {
		return false, nil
	}
	fresh := *rec
	fresh.State = store.StateHeld
	granted, err = m.fastPath.TryGrant(ctx, &fresh, about(lockkeeper.EventAcquired, rec))
	if granted && err == nil {
		*rec = fresh
	}
	return granted && err == nil, err
}

// deny records a refusal, unless the same blockers refused the same request before.
func (tx *Tx) deny(rec *store.Record, found []store.Overlap) error {
	key, sum := denialKey(rec), Digest(found)
	last, err := tx.Denial(key)
	if err != nil || last == sum {
		return err
	}
	if err := tx.SetDenial(key, sum); err != nil {
		return err
	}
	ev := about(lockkeeper.EventDenied, rec)
	ev.GrantID, ev.Conflicts = "", Conflicts(found) // the refused request never gets a grant
	return tx.note(ev)
}

// denialKey returns a key that is the same for equal requests of one holder.
func denialKey(rec *store.Record) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00", rec.Holder)
	for _, l := range rec.Locks {
		fmt.Fprintf(h, "%d%d%s\x00", l.Kind, l.Mode, l.Path)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// CheckConflicts lists what would block these locks now, and acquires nothing. It leaves out
// the grants that a request would free: those that have lapsed or whose holders are dead.
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
	return Conflicts(live), nil
}

// IsBlocked reports whether err is a *BlockedError: the request may be granted later.
func IsBlocked(err error) bool { return errors.As(err, new(*lockkeeper.BlockedError)) }
