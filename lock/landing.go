package lock

import (
	"context"
	"fmt"

	"lockkeeper"
	"lockkeeper/store"
)

// The engine does not know what a landing is. It knows that one can be open under a
// grant: decided, and neither complete nor rolled back. The paths of such a grant
// cannot be given to another holder. Package gate owns the landings themselves.

// recoverTries bounds how often a release recovers landings that keep coming.
const recoverTries = 8

// RecoverLandings completes or rolls back every landing that is open under a grant.
// It must not be called inside a transaction.
func (m *Manager) RecoverLandings(ctx context.Context, grantID string) error {
	if m.opt.RecoverLandings == nil {
		return &lockkeeper.RefusedError{Act: "release of " + grantID, Reason: "a landing under it may be incomplete, and this process has no access to the tree",
			Next: "lockkeeper gate recover, where the tree is"}
	}
	return m.opt.RecoverLandings(ctx, grantID)
}

// Look calls see with a grant under which the caller may write, and with the state
// in which it was found. It changes nothing.
func (m *Manager) Look(ctx context.Context, id, token string, see func(store.Reader, *store.Record) error) error {
	if err := validID(id); err != nil {
		return err
	}
	view := m.store.View
	if p, ok := m.store.(store.Peeker); ok {
		view = p.Peek
	}
	return view(ctx, func(r store.Reader) error {
		rec, err := m.mayWrite(r, r.Now(), id, hashToken(token))
		if err != nil {
			return err
		}
		return see(r, rec)
	})
}

// mayWrite finds a live grant whose lease has not expired. A policy may leave it to a
// person to free an expired grant, but nothing may be written under it.
func (m *Manager) mayWrite(r store.Reader, now store.Moment, id string, hash [32]byte) (*store.Record, error) {
	rec, err := m.live(r, now, id, hash)
	if err == nil && rec.Expires != 0 && rec.Expires <= now.Lease {
		err = &lockkeeper.NotHeldError{GrantID: id, Reason: fmt.Sprintf("its lease ran out at %s", rec.ExpiresAt.UTC().Format("15:04:05Z")),
			Next: "lockkeeper lock renew " + id}
	}
	return rec, err
}

// Writable finds a grant under which the caller may write, as Look does.
func (a *Act) Writable(id, token string) (*store.Record, error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	return a.s.m.mayWrite(a.s.tx, a.s.now, id, hashToken(token))
}

// LandingOpened records that a landing is open under a grant.
func (a *Act) LandingOpened(rec *store.Record) error {
	if rec.State == store.StateLanding {
		return nil
	}
	next := *rec
	next.State = store.StateLanding
	return a.s.tx.Save(&next)
}

// LandingEnded returns a grant to the held state if no landing is open under it.
func (a *Act) LandingEnded(grantID string) error {
	if grantID == "" {
		return nil
	}
	rec, err := a.s.tx.Get(grantID)
	if err != nil || rec == nil || rec.State != store.StateLanding {
		return err
	}
	if open, err := a.s.hasOpenLanding(grantID); err != nil || open {
		return err
	}
	next := *rec
	next.State = store.StateHeld
	return a.s.tx.Save(&next)
}

func (s *step) hasOpenLanding(grantID string) (bool, error) {
	open, err := s.tx.Landings(store.LandingQuery{GrantID: grantID, Open: true, Limit: 1})
	return len(open) > 0, err
}

// revoke takes a grant from its holder while a landing under it may be open. The grant
// still blocks others, and can no longer be used.
func (s *step) revoke(cur *store.Record, why lockkeeper.Event) error {
	why.Reason = string(why.Kind) + ": " + why.Reason
	why.Kind, why.GrantID, why.Holder, why.Locks = lockkeeper.EventRevoking, cur.ID, cur.Holder, cur.Locks
	if err := s.note(&why); err != nil {
		return err
	}
	next := *cur
	next.State = store.StateRevoking
	s.leaseFor(&next, 0)
	s.tx.Wake(cur.ID)
	return s.tx.Save(&next)
}

// finishRevoking frees a revoked grant once no landing is open under it.
func (m *Manager) finishRevoking(ctx context.Context, id string, why lockkeeper.Event) (freed bool, err error) {
	freed, open, err := m.freeRevoked(ctx, id, why)
	if err != nil || !open {
		return freed, err
	}
	if err := m.RecoverLandings(ctx, id); err != nil {
		return false, &leftError{"a landing under it is incomplete", err}
	}
	freed, _, err = m.freeRevoked(ctx, id, why)
	return freed, err
}

func (m *Manager) freeRevoked(ctx context.Context, id string, why lockkeeper.Event) (freed, open bool, err error) {
	err = m.update(ctx, func(s *step) error {
		cur, err := s.tx.Get(id)
		if err != nil || cur == nil || cur.State != store.StateRevoking {
			return err
		}
		if open, err = s.hasOpenLanding(id); err != nil || open {
			return err
		}
		freed = true
		return s.free(cur, why)
	})
	return freed && err == nil, open, err
}
