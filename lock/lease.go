package lock

import (
	"context"
	"crypto/subtle"
	"fmt"

	"lockkeeper"
	"lockkeeper/store"
)

// Release gives a grant back. It is idempotent: an id that is unknown or was
// released before is harmless and answers released == false. A wrong token is
// an error and changes nothing.
func (m *Manager) Release(ctx context.Context, id, token string) (released bool, err error) {
	if validID(id) != nil { // no grant has such an id
		return false, nil
	}
	return m.release(ctx, id, hashToken(token))
}

func (m *Manager) release(ctx context.Context, id string, hash [32]byte) (released bool, err error) {
	if m.express != nil {
		done, err := m.express.Dismiss(ctx, id, hash)
		if err != nil || done {
			return done, err
		}
	}
	for range recoverTries {
		released, open, err := m.releaseOnce(ctx, id, hash)
		if err != nil || !open {
			return released, err
		}
		if err := m.RecoverLandings(ctx, id); err != nil {
			return false, err
		}
	}
	return false, &lockkeeper.RefusedError{Act: "release of " + id, Reason: "new landings begin under it all the time", Next: "release it when they are complete"}
}

func (m *Manager) releaseOnce(ctx context.Context, id string, hash [32]byte) (released, open bool, err error) {
	s := m.newStep()
	defer s.recycle()
	s.leaving = leaving{id: id, hash: hash}
	err = s.run(ctx, (*step).release)
	return len(s.departed) > 0 && err == nil, s.leaving.open, err
}

// leaving is which grant is given back, and the hash of the token that came
// with it.
type leaving struct {
	id   string
	hash [32]byte
	open bool // a landing under it is
}

func (s *step) release() error {
	rec, err := s.tx.Get(s.leaving.id)
	if err != nil || rec == nil {
		return err
	}
	if err := checkToken(rec, s.leaving.hash); err != nil {
		return err
	}
	if s.leaving.open = rec.State > store.StateHeld; s.leaving.open {
		return nil
	}
	return s.free(rec, about(lockkeeper.EventReleased, rec))
}

// Renew gives a live grant a whole new lease. A grant that is gone, or whose
// policy freed it by time, answers *NotHeldError, and the failure is recorded.
func (m *Manager) Renew(ctx context.Context, id, token string) (lockkeeper.Grant, error) {
	return m.change(ctx, id, token, func(s *step, rec *store.Record) error {
		s.lease(rec)
		return s.tx.Save(rec)
	})
}

// SetProcess records which process stands behind a live grant, and with it the
// process group of the work it supervises.
func (m *Manager) SetProcess(ctx context.Context, id, token string, p lockkeeper.Process) (lockkeeper.Grant, error) {
	return m.change(ctx, id, token, func(s *step, rec *store.Record) error {
		rec.Process = &p
		return s.tx.Save(rec)
	})
}

// change runs fn on a copy of a live grant that the caller has the token of.
func (m *Manager) change(ctx context.Context, id, token string, fn func(*step, *store.Record) error) (lockkeeper.Grant, error) {
	var out store.Record
	var refusal error
	if err := validID(id); err != nil {
		return lockkeeper.Grant{}, err
	}
	err := m.update(ctx, func(s *step) error {
		rec, err := m.live(s.tx, s.now, id, hashToken(token))
		if err != nil {
			if notHeld, ok := err.(*lockkeeper.NotHeldError); ok {
				refusal = err
				return s.note(&lockkeeper.Event{Kind: lockkeeper.EventRenewFailed, GrantID: id, Reason: notHeld.Reason,
					Actor: lockkeeper.Actor{Name: "unknown", Kind: lockkeeper.ActorHolder}})
			}
			return err
		}
		out = *rec
		return fn(s, &out)
	})
	if err == nil {
		err = refusal
	}
	return out.Grant, err
}

// live finds a grant that is held, has not lapsed and belongs to the token. A
// lapsed one is not revived: whoever comes first, heartbeat or reaper, decides.
func (m *Manager) live(r store.Reader, now store.Moment, id string, hash [32]byte) (*store.Record, error) {
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
		return nil, &lockkeeper.NotHeldError{GrantID: id, Reason: "it was taken away", Next: "acquire again"}
	case m.lapsed(rec, now.Lease):
		return nil, &lockkeeper.NotHeldError{GrantID: id, Reason: fmt.Sprintf("its lease ran out at %s", rec.ExpiresAt.UTC().Format("15:04:05Z")), Next: "acquire again"}
	}
	return rec, nil
}

func checkToken(rec *store.Record, hash [32]byte) error {
	if subtle.ConstantTimeCompare(rec.TokenHash[:], hash[:]) != 1 {
		return &lockkeeper.NotHeldError{GrantID: rec.ID, Reason: "the token is not its own; it belongs to " + rec.Holder,
			Next: "use it as the user, and on the machine, that acquired it"}
	}
	return nil
}
