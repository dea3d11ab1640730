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

// A Grant is the holder's handle of a held grant.
type Grant struct {
	lockkeeper.Grant
	m     *Manager
	hash  [32]byte  // hash of the token
	began time.Time // when the lease was last requested; its duration counts from here

	renewing sync.Mutex // held while the grant is renewed or released: no heartbeat may follow a release

	mu    sync.Mutex
	ctx   context.Context // nil before the first call of Context or Keep
	end   context.CancelCauseFunc
	renew chan struct{} // closed by Keep
	kept  bool
}

// ErrReleased is the cause of the context of a grant that was released.
var ErrReleased = errors.New("the grant was released")

// handle returns the handle of a grant that was requested at the time began.
func (m *Manager) handle(rec *store.Record, token string, began time.Time) *Grant {
	g := &Grant{Grant: rec.Grant, m: m, hash: rec.TokenHash, began: began}
	g.Token = token
	return g
}

// Adopt returns a handle of a live grant that was acquired elsewhere, if the token is the
// grant's. It renews the lease.
func (m *Manager) Adopt(ctx context.Context, id, token string) (*Grant, error) {
	began := time.Now()
	rec, err := m.Renew(ctx, id, token)
	if err != nil {
		return nil, err
	}
	return m.handle(&store.Record{Grant: rec, TokenHash: hashToken(token)}, token, began), nil
}

// Release releases the grant and ends its context. It is idempotent.
func (g *Grant) Release(ctx context.Context) error {
	return g.ReleaseBy(func() error {
		_, err := g.m.release(ctx, g.ID, g.hash)
		return err
	})
}

// ReleaseBy is Release for a caller that releases the grant in a transaction of its own: if
// free returns nil, the grant is released.
func (g *Grant) ReleaseBy(free func() error) error {
	g.renewing.Lock()
	defer g.renewing.Unlock()
	// Locked while free runs: the release wakes the keeper, which must not report the
	// grant as lost before its context ends with ErrReleased.
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

// Live returns nil if the grant is still held, and otherwise an error that says why not.
func (g *Grant) Live(ctx context.Context) error {
	return g.m.store.View(ctx, func(r store.Reader) error {
		_, err := g.m.live(r, g.ID, g.hash)
		return err
	})
}

// Abandon ends the context of a grant that could not be released. The grant is not renewed
// any more and ends with its lease.
func (g *Grant) Abandon(why error) {
	g.Context()
	g.lost(why)
}

func (g *Grant) lost(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end(why)
}

// Context returns a context that ends when the grant does: when it is released, expires,
// is recovered or force-released, or when the store could not be reached for a whole lease.
// The cause of the context says which. If another process ends the grant, the context ends
// at once if the grant has a recorded process, and within 30 s otherwise.
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

// start makes the context and starts its keeper. The caller holds g.mu.
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
	g.m.owned.Go(g.watch)
}

// watch is the keeper: it checks and renews the grant until its context ends.
func (g *Grant) watch() {
	listener, err := g.m.store.Listen(g.ctx, g.ID)
	if err != nil {
		g.lost(err)
		return
	}
	defer listener.Close()
	policy := g.m.opt.Policies[g.Policy]
	lease := time.Duration(0)
	if !g.ExpiresAt.IsZero() {
		lease = g.ExpiresAt.Sub(g.HeartbeatAt)
	}
	trusted := g.began
	renewing, asked := false, g.renew
	// The first check finds changes from before the listener existed. A check after a
	// wake-up does not renew, because the grant was usually released.
	for renew := false; ; {
		began := time.Now()
		held, err := g.check(renew)
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
		wake, stop := g.nextCheck(policy, renewing, trusted, lease)
		select {
		case <-g.ctx.Done():
			stop()
			return
		case <-asked:
			renewing, asked, renew = true, nil, true
		case <-listener.Woken():
			renew = false
		case <-wake:
			renew = renewing
		}
		stop()
	}
}

// patience returns how long a lease is trusted while the store is unreachable. The keeper of
// a lease that covers work gives up early, so that there is time to stop the work.
func patience(lease time.Duration, renewing bool) time.Duration {
	if renewing {
		return lease * 2 / 3
	}
	return lease
}

// nextCheck returns a timer for the next check without a wake-up.
func (g *Grant) nextCheck(policy lockkeeper.Policy, renewing bool, trusted time.Time, lease time.Duration) (<-chan time.Time, func() bool) {
	wait := 30 * time.Second // a check in case a wake-up was lost
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

// check renews the grant, or only reads it, and returns how much of its lease is left.
func (g *Grant) check(renew bool) (lease time.Duration, err error) {
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
	defer cancel()
	if renew {
		g.renewing.Lock()
		defer g.renewing.Unlock()
		if g.ctx.Err() != nil { // the grant was released meanwhile
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
			return &lockkeeper.NotHeldError{GrantID: g.ID, Reason: "it was released, recovered or revoked"}
		case rec.State == store.StateRevoking:
			return &lockkeeper.NotHeldError{GrantID: g.ID, Reason: "it was revoked"}
		case g.m.lapsed(rec, now):
			return &lockkeeper.NotHeldError{GrantID: g.ID, Reason: "its lease expired"}
		case rec.Expires != 0:
			lease = rec.Expires.Until(now)
		}
		return nil
	})
	return lease, err
}
