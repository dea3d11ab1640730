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

// recoverTries bounds how often a release recovers landings while new ones begin.
const recoverTries = 8

// RecoverLandings completes or rolls back every landing that is open under a grant.
// It must not be called inside a transaction.
func (m *Manager) RecoverLandings(ctx context.Context, grantID string) error {
	if m.opt.RecoverLandings == nil {
		return &lockkeeper.RefusedError{Act: "release of " + grantID, Reason: "a landing under it may be incomplete, and this process has no access to the tree",
			Next: "run `lockkeeper gate recover` on the machine that has the tree"}
	}
	return m.opt.RecoverLandings(ctx, grantID)
}

// RetryRecovered calls the function release until no landing is open under the grant that it frees,
// and recovers the landings in between. It refuses an act on a grant that another process is
// revoking: that process frees it, when the work under it has ended.
func (m *Manager) RetryRecovered(ctx context.Context, grantID, act string, release func() (landingOpen bool, err error)) error {
	for range recoverTries {
		if open, err := release(); err != nil || !open {
			return err
		}
		if err := m.RecoverLandings(ctx, grantID); err != nil {
			return err
		}
		rec, err := store.Read(ctx, m.store, func(r store.Reader) (*store.Record, error) { return r.Get(grantID) })
		if err != nil {
			return err
		}
		if rec != nil && rec.State == store.StateRevoking {
			return &lockkeeper.RefusedError{Act: act, Reason: "the grant was revoked, and the work under it is being stopped", Next: "lockkeeper why " + grantID}
		}
	}
	return &lockkeeper.RefusedError{Act: act, Reason: "new landings keep starting under it", Next: "stop the process that writes under it"}
}

// ViewWritable calls the function see with a grant under which the caller may write, and with the
// Reader that found it.
func (m *Manager) ViewWritable(ctx context.Context, id, token string, see func(store.Reader, *store.Record) error) error {
	if err := validID(id); err != nil {
		return err
	}
	view := m.store.View
	if p, ok := m.store.(store.Peeker); ok {
		view = p.Peek
	}
	return view(ctx, func(r store.Reader) error {
		rec, err := m.mayWrite(r, id, hashToken(token))
		if err != nil {
			return err
		}
		return see(r, rec)
	})
}

// mayWrite finds a live grant whose lease has not expired. A policy may leave it to a
// person to free an expired grant, but nothing may be written under it.
func (m *Manager) mayWrite(r store.Reader, id string, hash [32]byte) (*store.Record, error) {
	rec, err := m.live(r, id, hash)
	if err == nil && rec.Expires != 0 && rec.Expires <= r.Now().Lease {
		err = &lockkeeper.NotHeldError{GrantID: id, Reason: fmt.Sprintf("its lease expired at %s", rec.ExpiresAt.UTC().Format("2006-01-02 15:04:05Z")),
			Next: "lockkeeper lock renew " + id}
	}
	return rec, err
}

// Writable finds a grant under which the caller may write, as ViewWritable does.
func (tx *Tx) Writable(id, token string) (*store.Record, error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	return tx.m.mayWrite(tx, id, hashToken(token))
}

// LandingOpened records that a landing is open under a grant.
func (tx *Tx) LandingOpened(rec *store.Record) error {
	if rec.State == store.StateLanding {
		return nil
	}
	next := *rec
	next.State = store.StateLanding
	return tx.Save(&next)
}

// LandingEnded returns a grant to the held state if no landing is open under it.
func (tx *Tx) LandingEnded(grantID string) error {
	if grantID == "" {
		return nil
	}
	rec, err := tx.Get(grantID)
	if err != nil || rec == nil || rec.State != store.StateLanding {
		return err
	}
	if open, err := tx.hasOpenLanding(grantID); err != nil || open {
		return err
	}
	next := *rec
	next.State = store.StateHeld
	return tx.Save(&next)
}

func (tx *Tx) hasOpenLanding(grantID string) (bool, error) {
	open, err := tx.Landings(store.LandingQuery{GrantID: grantID, Open: true, Limit: 1})
	return len(open) > 0, err
}

// revoke takes a grant from its holder while a landing under it may be open. The grant
// still blocks others, and can no longer be used.
func (tx *Tx) revoke(cur *store.Record, why lockkeeper.Event) error {
	why.Reason = string(why.Kind) + ": " + why.Reason
	why.Kind, why.GrantID, why.Holder, why.Locks = lockkeeper.EventRevoking, cur.ID, cur.Holder, cur.Locks
	if err := tx.note(why); err != nil {
		return err
	}
	next := *cur
	next.State = store.StateRevoking
	tx.leaseFor(&next, 0)
	tx.Wake(cur.ID)
	return tx.Save(&next)
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
	err = m.Update(ctx, func(tx *Tx) error {
		cur, err := tx.Get(id)
		if err != nil || cur == nil || cur.State != store.StateRevoking {
			return err
		}
		if open, err = tx.hasOpenLanding(id); err != nil || open {
			return err
		}
		freed = true
		return tx.free(cur, why)
	})
	return freed && err == nil, open, err
}
