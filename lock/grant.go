package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// Release releases the grant and ends its context. It is idempotent. While the store cannot be reached for some
// time, Release tries again as long as the lease lives. If it fails, the grant is not renewed any more and ends with its lease.
func (g *Grant) Release(ctx context.Context) error {
	err := g.insist(ctx, func() error {
		return g.ReleaseBy(func() error {
			_, err := g.m.release(ctx, g.ID, g.hash)
			return err
		})
	})
	if err != nil {
		g.Abandon(fmt.Errorf("grant %s could not be released: %w", g.ID, err))
	}
	return err
}

// SetProcess records the process of the work under the grant, as Manager.SetProcess does. It tries again as
// Release does.
func (g *Grant) SetProcess(ctx context.Context, p lockkeeper.Process) error {
	return g.insist(ctx, func() error {
		_, err := g.m.SetProcess(ctx, g.ID, g.Token, p)
		return err
	})
}

// insist runs fn again after temporary errors of the store, as long as a lease that ends lives.
func (g *Grant) insist(ctx context.Context, fn func() error) error {
	err := fn()
	if !lockkeeper.IsTemporary(err) || g.ExpiresAt.IsZero() {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.Context(), cancel)()
	return store.Retry(ctx, forever, fn)
}

// ReleaseBy is Release for a caller that releases the grant in a transaction of its own: if
// free returns nil, the grant is released. If it fails, the grant is still renewed, so that the
// caller can try again.
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

// KillAfter returns how long work under the grant may take to end after the grant was lost.
func (g *Grant) KillAfter() time.Duration {
	if g.ExpiresAt.IsZero() {
		return KillAfter(0)
	}
	return KillAfter(g.ExpiresAt.Sub(g.HeartbeatAt))
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
	k := keeper{policy: g.m.opt.Policies[g.Policy], trusted: g.began, asked: g.renew}
	if !g.ExpiresAt.IsZero() {
		k.lease = g.ExpiresAt.Sub(g.HeartbeatAt)
	}
	// It ends the context also while an attempt hangs.
	var failed atomic.Pointer[error] // of the last attempt
	end := time.AfterFunc(forever, func() {
		g.lost(fmt.Errorf("the lease of grant %s could not be renewed: %w", g.ID, *cmp.Or(failed.Load(), new(errNoAnswer))))
	})
	defer end.Stop()
	end.Reset(k.untilEnd())
	listener, woken := store.Listener(nil), (<-chan struct{})(nil)
	defer func() {
		if listener != nil {
			listener.Close()
		}
	}()
	listen := time.NewTimer(g.m.listenDelay())
	defer listen.Stop()
	for wait := k.next(); ; {
		again := time.NewTimer(wait)
		renew := false // a check after a wake-up does not renew, because the grant was usually released
		select {
		case <-g.ctx.Done():
			again.Stop()
			return
		case <-k.asked:
			k.renewing, k.asked, renew = true, nil, true
			end.Reset(k.untilEnd())
			if g.m.fastPath != nil && k.next() > 0 { // a round trip for little
				wait = k.next()
				again.Stop()
				continue
			}
		case <-listen.C:
			// The check finds changes from before the listener existed. Without a listener the
			// heartbeats find them.
			if l, err := g.m.store.Listen(g.ctx, g.ID); err == nil {
				listener, woken = l, l.Woken()
			}
		case <-woken:
		case <-again.C:
			renew = k.renewing
		}
		again.Stop()
		began := time.Now()
		lease, err := g.check(renew, k.untilEnd())
		switch {
		case lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld:
			g.lost(err)
			return
		case err != nil:
			failed.Store(&err)
			wait = retryAfter(k.lease)
			continue
		case renew || !k.renewing:
			k.trusted, k.lease = began, lease
			failed.Store(nil)
			end.Reset(k.untilEnd())
		}
		wait = k.next()
	}
}

// A keeper is the state of watch.
type keeper struct {
	policy   lockkeeper.Policy
	trusted  time.Time     // start of the last attempt that succeeded
	lease    time.Duration // at that time; 0: it never ends
	renewing bool
	asked    <-chan struct{} // closed by Keep
}

const forever = time.Duration(1<<63 - 1)

// untilEnd returns how long the grant is still trusted without an answer of the store.
func (k *keeper) untilEnd() time.Duration {
	switch {
	case k.lease <= 0:
		return forever
	case !k.renewing:
		return time.Until(k.trusted.Add(k.lease)) + 100*time.Millisecond // the check at its end comes first
	}
	return time.Until(k.trusted.Add(trust(k.lease)))
}

// next returns the time until the next check without a wake-up. Checks in between do not delay a renewal.
func (k *keeper) next() time.Duration {
	wait := 30 * time.Second // a check in case a wake-up was lost
	switch {
	case k.lease <= 0:
		return wait
	case !k.renewing:
		return min(wait, max(time.Until(k.trusted.Add(k.lease)), 10*time.Millisecond))
	}
	wait = min(wait, k.lease/3, trust(k.lease)/2)
	if k.policy.Heartbeat > 0 {
		wait = min(wait, k.policy.Heartbeat)
	}
	return max(wait-time.Since(k.trusted), 0)
}

var errNoAnswer = errors.New("no renewal ended in time")

// listenDelay returns how long a keeper waits before it listens. Most work is short, and a connection to a
// server costs more than a look later.
func (m *Manager) listenDelay() time.Duration {
	if m.fastPath == nil {
		return 0
	}
	return time.Second
}

// retryAfter returns the time until the next attempt after one that failed.
func retryAfter(lease time.Duration) time.Duration {
	if lease <= 0 {
		return 5 * time.Second
	}
	return min(5*time.Second, lease/30)
}

// check renews the grant, or only reads it, and returns how much of its lease is left. It leaves time for another
// attempt before the keeper gives up.
func (g *Grant) check(renew bool, left time.Duration) (lease time.Duration, err error) {
	if !renew {
		left /= 2
	}
	ctx, cancel := context.WithTimeout(g.ctx, min(10*time.Second, max(left/2, 100*time.Millisecond)))
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
