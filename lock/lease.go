package lock

import (
	"context"
	"crypto/subtle"
	"fmt"

	"lockkeeper"
	"lockkeeper/store"
)

// Release releases a grant. It is idempotent: if the id is unknown or was released before,
// released is false. A wrong token is an error and changes nothing.
func (m *Manager) Release(ctx context.Context, id, token string) (released bool, err error) {
	if validID(id) != nil { // no grant has such an id
		return false, nil
	}
	return m.release(ctx, id, hashToken(token))
}

func (m *Manager) release(ctx context.Context, id string, hash [32]byte) (released bool, err error) {
	if m.fastPath != nil {
		done, err := m.fastPath.TryRelease(ctx, id, hash)
		if err != nil || done {
			return done, err
		}
	}
	err = m.RetryRecovered(ctx, id, "release of "+id, func() (open bool, err error) {
		released, open, err = m.releaseOnce(ctx, id, hash)
		return open, err
	})
	return released, err
}

// A release is one transaction that releases a grant, unless a landing is open under it.
type release struct {
	id   string
	hash [32]byte // hash of the token

	released, open bool
}

func (m *Manager) releaseOnce(ctx context.Context, id string, hash [32]byte) (released, open bool, err error) {
	tx := m.newTx()
	defer tx.recycle()
	tx.release = release{id: id, hash: hash}
	err = tx.update(ctx, (*Tx).tryRelease)
	return tx.release.released && err == nil, tx.release.open, err
}

func (tx *Tx) tryRelease() error {
	r := &tx.release
	rec, err := tx.Get(r.id)
	if err != nil || rec == nil {
		return err
	}
	if err := checkToken(rec, r.hash); err != nil {
		return err
	}
	if r.open = rec.State > store.StateHeld; r.open {
		return nil
	}
	r.released = true
	return tx.free(rec, about(lockkeeper.EventReleased, rec))
}

// Renew starts the lease of a live grant again. If the grant is gone or has lapsed, Renew
// records the failure and returns a *NotHeldError.
func (m *Manager) Renew(ctx context.Context, id, token string) (lockkeeper.Grant, error) {
	if g, done, err := m.tryRenew(ctx, id, token, true, nil); done || err != nil {
		return g, err
	}
	return m.change(ctx, id, token, func(tx *Tx, rec *store.Record) error {
		tx.lease(rec)
		return tx.Save(rec)
	})
}

// tryRenew uses the fast path of the store, if it has one.
func (m *Manager) tryRenew(ctx context.Context, id, token string, lease bool, p *lockkeeper.Process) (g lockkeeper.Grant, done bool, err error) {
	if m.fastPath == nil || validID(id) != nil {
		return g, false, nil
	}
	rec, err := m.fastPath.TryRenew(ctx, id, hashToken(token), lease, p)
	if err != nil || rec == nil {
		return g, false, err
	}
	return rec.Grant, true, nil
}

// SetProcess records the process behind a live grant, and the process group of the work
// that it supervises.
func (m *Manager) SetProcess(ctx context.Context, id, token string, p lockkeeper.Process) (lockkeeper.Grant, error) {
	if g, done, err := m.tryRenew(ctx, id, token, false, &p); done || err != nil {
		return g, err
	}
	return m.change(ctx, id, token, func(tx *Tx, rec *store.Record) error {
		rec.Process = &p
		return tx.Save(rec)
	})
}

// change runs fn on a copy of a live grant, if the token is the grant's.
func (m *Manager) change(ctx context.Context, id, token string, fn func(*Tx, *store.Record) error) (lockkeeper.Grant, error) {
	var out store.Record
	var refusal error
	if err := validID(id); err != nil {
		return lockkeeper.Grant{}, err
	}
	err := m.Update(ctx, func(tx *Tx) error {
		rec, err := m.live(tx, id, hashToken(token))
		if err != nil {
			if notHeld, ok := err.(*lockkeeper.NotHeldError); ok {
				refusal = err
				return tx.note(lockkeeper.Event{Kind: lockkeeper.EventRenewFailed, GrantID: id, Reason: notHeld.Reason,
					Actor: lockkeeper.Actor{Name: "unknown", Kind: lockkeeper.ActorHolder}})
			}
			return err
		}
		out = *rec
		return fn(tx, &out)
	})
	if err == nil {
		err = refusal
	}
	return out.Grant, err
}

// live finds a grant that is held, has not lapsed and has this token. A heartbeat does not
// revive a lapsed grant, even if no reaper has freed it yet.
func (m *Manager) live(r store.Reader, id string, hash [32]byte) (*store.Record, error) {
	rec, err := r.Get(id)
	switch {
	case err != nil:
		return nil, err
	case rec == nil || rec.State == store.StateWaiting:
		return nil, &lockkeeper.NotHeldError{GrantID: id, Reason: "it is unknown here: released, expired or never granted", Next: "acquire again"}
	}
	if err := checkToken(rec, hash); err != nil {
		return nil, err
	}
	switch {
	case rec.State == store.StateRevoking:
		return nil, &lockkeeper.NotHeldError{GrantID: id, Reason: "it was revoked", Next: "acquire again"}
	case m.lapsed(rec, r.Now().Lease):
		return nil, &lockkeeper.NotHeldError{GrantID: id, Reason: fmt.Sprintf("its lease expired at %s", rec.ExpiresAt.UTC().Format("2006-01-02 15:04:05Z")), Next: "acquire again"}
	}
	return rec, nil
}

func checkToken(rec *store.Record, hash [32]byte) error {
	if subtle.ConstantTimeCompare(rec.TokenHash[:], hash[:]) != 1 {
		return &lockkeeper.NotHeldError{GrantID: rec.ID, Reason: "wrong token; the grant belongs to " + rec.Holder,
			Next: "run the command as the user and on the machine that acquired the grant"}
	}
	return nil
}
