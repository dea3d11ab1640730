package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// Grant is a held grant in the hands of its holder.
type Grant struct {
	lockkeeper.Grant
	m     *Manager
	hash  [32]byte  // of the token
	began time.Time // when the lease was last asked for: its trust counts from there

	turn sync.Mutex // to renew it or to give it back: a heartbeat must not come for what was just released

	mu    sync.Mutex
	ctx   context.Context // nil until somebody asks for it
	end   context.CancelCauseFunc
	renew chan struct{} // closed by Keep
	kept  bool
}

// ErrReleased is the cause of a grant's context that ended by Release.
var ErrReleased = errors.New("the grant was released")

// handle makes the handle of a grant that was asked for at began.
func (m *Manager) handle(rec *store.Record, token string, began time.Time) *Grant {
	g := &Grant{Grant: rec.Grant, m: m, hash: rec.TokenHash, began: began}
	g.Token = token
	return g
}

// Adopt makes a handle for a grant that was acquired elsewhere, after checking
// that it is live and the token its own. It gives the grant a new lease.
func (m *Manager) Adopt(ctx context.Context, id, token string) (*Grant, error) {
	began := time.Now()
	rec, err := m.Renew(ctx, id, token)
	if err != nil {
		return nil, err
	}
	g := &Grant{Grant: rec, m: m, hash: hashToken(token), began: began}
	g.Token = token
	return g, nil
}

// Release gives the grant back and ends its context. It is idempotent.
func (g *Grant) Release(ctx context.Context) error {
	return g.ReleaseBy(func() error {
		_, err := g.m.release(ctx, g.ID, g.hash)
		return err
	})
}

// ReleaseBy is Release for a caller that gives the grant back as part of something
// larger. When free returns nil the grant is not held any more.
func (g *Grant) ReleaseBy(free func() error) error {
	g.turn.Lock()
	defer g.turn.Unlock()
	// Held throughout, so that the keeper, which the release wakes, cannot call
	// the grant lost before its context has ended as released.
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := free(); err != nil {
		return err
	}
	g.Released = true
	if g.end != nil {
		g.end(ErrReleased)
	}
	return nil
}

// Live looks whether the grant is still held; what it answers otherwise says why not.
func (g *Grant) Live(ctx context.Context) error {
	return g.m.store.View(ctx, func(r store.Reader) error {
		_, err := g.m.live(r, r.Now(), g.ID, g.hash)
		return err
	})
}

// Abandon ends the context of a grant that could not be given back: nobody renews it any
// more, and it ends with its lease.
func (g *Grant) Abandon(why error) {
	g.Context()
	g.lost(why)
}

// lost ends the context of a grant that is not held any more.
func (g *Grant) lost(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end(why)
}

// Context ends when the grant does: released, expired, recovered, taken away,
// or no longer provably held because the store could not be reached for a whole
// lease. Its cause says which. Others can end a grant, too: that is noticed at
// once when a process is recorded for the grant, and within 30 s otherwise.
func (g *Grant) Context() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.start()
	return g.ctx
}

// Keep renews the grant at its policy's heartbeat until its context ends.
func (g *Grant) Keep() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.start()
	if !g.kept {
		g.kept = true
		close(g.renew)
	}
}

// start makes the context, and the keeper that ends it. The caller has g.mu.
func (g *Grant) start() {
	if g.ctx != nil {
		return
	}
	g.ctx, g.end = context.WithCancelCause(g.m.ctx)
	g.renew = make(chan struct{})
	if g.Released {
		g.end(ErrReleased)
		return
	}
	g.m.owned.Go(g.mind)
}

// mind watches over the grant until its context ends.
func (g *Grant) mind() {
	bell, err := g.m.store.Listen(g.ctx, g.ID)
	if err != nil {
		g.lost(err)
		return
	}
	defer bell.Close()
	policy := g.m.opt.Policies[g.Policy]
	lease := time.Duration(0)
	if !g.ExpiresAt.IsZero() {
		lease = g.ExpiresAt.Sub(g.HeartbeatAt)
	}
	trusted := g.began
	renewing, asked := false, g.renew
	// The first look finds what rang before the bell was there. One that the bell
	// asks for does not renew: it most often finds the grant released.
	for due := false; ; {
		began := time.Now()
		held, err := g.look(due)
		switch {
		case err == nil:
			trusted, lease = began, held
		case lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld:
			g.lost(err)
			return
		case lease > 0 && time.Since(trusted) >= patience(lease, renewing):
			g.lost(fmt.Errorf("the lease of grant %s could not be renewed for %s: %w", g.ID, lease, err))
			return
		}
		wake, stop := g.nextLook(policy, renewing, trusted, lease)
		select {
		case <-g.ctx.Done():
			stop()
			return
		case <-asked:
			renewing, asked, due = true, nil, true
		case <-bell.Woken():
			due = false
		case <-wake:
			due = renewing
		}
		stop()
	}
}

// patience is how long a lease is trusted while the store cannot be asked. One
// that covers work is given up while there is time left to stop the work.
func patience(lease time.Duration, renewing bool) time.Duration {
	if renewing {
		return lease * 2 / 3
	}
	return lease
}

// nextLook is when the grant should be looked at without being told to.
func (g *Grant) nextLook(policy lockkeeper.Policy, renewing bool, trusted time.Time, lease time.Duration) (<-chan time.Time, func() bool) {
	wait := 30 * time.Second // the slow poll behind the bell
	if lease > 0 {
		wait = min(wait, max(time.Until(trusted.Add(patience(lease, renewing))), 10*time.Millisecond))
		if renewing {
			beat := lease / 3
			if policy.Heartbeat > 0 {
				beat = min(beat, policy.Heartbeat)
			}
			wait = min(wait, beat)
		}
	}
	t := time.NewTimer(wait)
	return t.C, t.Stop
}

// look renews the grant, or just looks whether it is still there, and returns
// how long it is good for.
func (g *Grant) look(renew bool) (lease time.Duration, err error) {
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
	defer cancel()
	if renew {
		g.turn.Lock()
		defer g.turn.Unlock()
		if g.ctx.Err() != nil { // released meanwhile
			return 0, context.Cause(g.ctx)
		}
		rec, err := g.m.Renew(ctx, g.ID, g.Token)
		if err != nil || rec.ExpiresAt.IsZero() {
			return 0, err
		}
		return rec.ExpiresAt.Sub(rec.HeartbeatAt), nil
	}
	err = g.m.store.View(ctx, func(r store.Reader) error {
		rec, err := r.Get(g.ID)
		switch now := r.Now().Lease; {
		case err != nil:
			return err
		case rec == nil:
			return &lockkeeper.NotHeldError{GrantID: g.ID, Reason: "it was released, recovered or taken away"}
		case rec.State == store.StateRevoking:
			return &lockkeeper.NotHeldError{GrantID: g.ID, Reason: "it was taken away"}
		case g.m.lapsed(rec, now):
			return &lockkeeper.NotHeldError{GrantID: g.ID, Reason: "its lease ran out"}
		case rec.Expires != 0:
			lease = rec.Expires.Until(now)
		}
		return nil
	})
	return lease, err
}
