package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ada = lockkeeper.Actor{Name: "Ada", Kind: lockkeeper.ActorPerson}

// alone runs a test with a grant on a file under synctest.
func alone(t *testing.T, policy string, test func(t *testing.T, m *lock.Manager, s *unreachable, g *lock.Grant)) {
	synctest.Test(t, func(t *testing.T) {
		s := &unreachable{Store: memstore.New("test", memstore.Options{})}
		m := lock.New(s, lock.Options{})
		g, err := m.TryAcquire(t.Context(), lockkeeper.Request{Holder: "h", Policy: policy, Locks: []lockkeeper.Lock{file(lockkeeper.Write, "x")}})
		if err != nil {
			t.Fatal(err)
		}
		test(t, m, s, g)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// unreachable is a store that a test can disconnect.
type unreachable struct {
	store.Store
	cut   atomic.Bool
	hangs atomic.Bool // while cut, calls do not return until their context ends
}

func (u *unreachable) fail(ctx context.Context) error {
	if u.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return errCut
}

var errCut = errors.New("no route to host")

func (u *unreachable) Update(ctx context.Context, fn func(store.Tx) error) error {
	if u.cut.Load() {
		return u.fail(ctx)
	}
	return u.Store.Update(ctx, fn)
}

func (u *unreachable) View(ctx context.Context, fn func(store.Reader) error) error {
	if u.cut.Load() {
		return u.fail(ctx)
	}
	return u.Store.View(ctx, fn)
}

func ended(t *testing.T, ctx context.Context, code lockkeeper.Code) {
	t.Helper()
	synctest.Wait()
	if err := context.Cause(ctx); ctx.Err() == nil || lockkeeper.CodeOf(err) != code {
		t.Errorf("the context ended with %v, want code %s", err, code)
	}
}

// The context of a force-released grant ends at once, not at the next check, and this does not
// count as a failed renewal.
func TestContextEndsWhenTakenAway(t *testing.T) {
	for _, keep := range []bool{false, true} {
		alone(t, "agent", func(t *testing.T, m *lock.Manager, _ *unreachable, g *lock.Grant) {
			ctx := g.Context()
			if keep {
				g.Keep()
			}
			synctest.Wait()
			began := time.Now()
			if err := m.ForceRelease(t.Context(), g.ID, ada, "now"); err != nil {
				t.Fatal(err)
			}
			ended(t, ctx, lockkeeper.CodeNotHeld)
			if d := time.Since(began); d != 0 {
				t.Errorf("it took %v", d)
			}
			events, err := m.Events(t.Context(), store.EventQuery{Limit: 10})
			if err != nil || len(events) != 2 {
				t.Errorf("events %+v, %v; want acquired and force_released", events, err)
			}
		})
	}
}

// Without Keep the context ends with the lease. With Keep the grant lasts.
//
// shows: SW-72 CF-10 GP-15 PL-81
func TestContextEndsWithLease(t *testing.T) {
	alone(t, "agent", func(t *testing.T, m *lock.Manager, _ *unreachable, g *lock.Grant) {
		ctx := g.Context()
		time.Sleep(30*time.Minute - time.Second)
		if err := context.Cause(ctx); err != nil {
			t.Errorf("ended early: %v", err)
		}
		time.Sleep(2 * time.Second)
		ended(t, ctx, lockkeeper.CodeNotHeld)
	})
	alone(t, "dal", func(t *testing.T, m *lock.Manager, _ *unreachable, g *lock.Grant) {
		g.Keep()
		time.Sleep(24 * time.Hour)
		if err := context.Cause(g.Context()); err != nil {
			t.Errorf("a grant that is kept ended: %v", err)
		}
		if n, err := m.Recover(t.Context()); n != 0 || err != nil {
			t.Errorf("recovered %d, %v", n, err)
		}
	})
}

// A holder that cannot reach the store trusts its grant until the time that it needs to stop the
// work is all that is left of the lease. The lease counts from its last renewal.
//
// shows: CF-11
func TestContextEndsWhenCutOff(t *testing.T) {
	alone(t, "dal", func(t *testing.T, m *lock.Manager, s *unreachable, g *lock.Grant) {
		g.Keep()
		ctx := g.Context()
		time.Sleep(time.Minute)
		synctest.Wait()
		s.cut.Store(true)
		time.Sleep(19 * time.Second)
		if ctx.Err() != nil {
			t.Errorf("ended although its lease still runs: %v", context.Cause(ctx))
		}
		time.Sleep(14 * time.Second)
		synctest.Wait()
		if err := context.Cause(ctx); !errors.Is(err, errCut) {
			t.Errorf("33 s without the store: %v", err)
		}
	})
}

// Whatever the lease, and however the store fails, work that is killed after KillAfter has ended before the
// lease has, with time to spare, and the keeper does not give up while it could still renew.
func TestWorkEndsBeforeTheLease(t *testing.T) {
	for _, lease := range []time.Duration{lock.ShortestKept, 5 * time.Second, 10 * time.Second, 15 * time.Second, time.Minute, 30 * time.Minute} {
		for _, hangs := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := &unreachable{Store: memstore.New("test", memstore.Options{})}
				m := lock.New(s, lock.Options{})
				g, err := m.TryAcquire(t.Context(), lockkeeper.Request{Holder: "h", TTL: lease, Locks: []lockkeeper.Lock{file(lockkeeper.Write, "x")}})
				if err != nil {
					t.Fatal(err)
				}
				g.Keep()
				time.Sleep(3*lease + lease/7)
				synctest.Wait()
				e, err := m.Request(t.Context(), g.ID)
				if err != nil {
					t.Fatal(err)
				}
				s.hangs.Store(hangs)
				s.cut.Store(true)
				<-g.Context().Done()
				left := time.Until(*e.ExpiresAt) - g.KillAfter()
				if least := min(lease/8, 9*time.Second); left < least {
					t.Errorf("lease %s, hangs %v: %s are left to kill the work, want %s", lease, hangs, left, least)
				}
				if since := time.Since(e.HeartbeatAt); since < lease/2 {
					t.Errorf("lease %s: gave up after %s", lease, since)
				}
				s.cut.Store(false)
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// An outage that is shorter than the trusted part of the lease ends nothing.
func TestOutageThatEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unreachable{Store: memstore.New("test", memstore.Options{})}
		m := lock.New(s, lock.Options{})
		g, err := m.TryAcquire(t.Context(), lockkeeper.Request{Holder: "h", TTL: 10 * time.Second, Locks: []lockkeeper.Lock{file(lockkeeper.Write, "x")}})
		if err != nil {
			t.Fatal(err)
		}
		g.Keep()
		for i := range 20 {
			s.hangs.Store(i%2 == 0)
			s.cut.Store(true)
			time.Sleep(2 * time.Second)
			s.cut.Store(false)
			time.Sleep(4 * time.Second)
		}
		if err := context.Cause(g.Context()); err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Wake-ups that come more often than heartbeats, as those of a listener that polls, delay no renewal.
func TestWakeUpsDelayNoRenewal(t *testing.T) {
	alone(t, "dal", func(t *testing.T, m *lock.Manager, s *unreachable, g *lock.Grant) {
		g.Keep()
		for range 120 {
			time.Sleep(time.Second)
			if err := s.Update(t.Context(), func(tx store.Tx) error { tx.Wake(g.ID); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if err := context.Cause(g.Context()); err != nil {
			t.Error(err)
		}
		e, err := m.Request(t.Context(), g.ID)
		if err != nil || time.Since(e.HeartbeatAt) > 11*time.Second {
			t.Errorf("last renewed %s ago, %v", time.Since(e.HeartbeatAt), err)
		}
	})
}

// A kept grant whose release fails is not renewed any more: the next holder waits for its lease at most.
func TestFailedReleaseEndsRenewals(t *testing.T) {
	alone(t, "dal", func(t *testing.T, m *lock.Manager, s *unreachable, g *lock.Grant) {
		g.Keep()
		time.Sleep(time.Minute)
		s.cut.Store(true)
		if err := g.Release(t.Context()); !errors.Is(err, errCut) {
			t.Fatalf("the release ended with %v", err)
		}
		s.cut.Store(false)
		if err := context.Cause(g.Context()); !errors.Is(err, errCut) {
			t.Errorf("its context: %v", err)
		}
		before, err := m.Request(t.Context(), g.ID)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		after, err := m.Request(t.Context(), g.ID)
		if err != nil || after != nil && after.HeartbeatAt != before.HeartbeatAt {
			t.Errorf("renewed at %v after %v, %v", after.HeartbeatAt, before.HeartbeatAt, err)
		}
		if err := g.Release(t.Context()); err != nil {
			t.Errorf("a second release: %v", err)
		}
	})
}

func TestContextOfReleased(t *testing.T) {
	alone(t, "agent", func(t *testing.T, m *lock.Manager, _ *unreachable, g *lock.Grant) {
		early := g.Context()
		g.Keep()
		synctest.Wait()
		if err := g.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		late := g.Context()
		for _, ctx := range []context.Context{early, late} {
			if err := context.Cause(ctx); err != lock.ErrReleased {
				t.Errorf("cause %v", err)
			}
		}
	})
}

// shows: CF-7
func TestAdopt(t *testing.T) {
	alone(t, "agent", func(t *testing.T, m *lock.Manager, _ *unreachable, g *lock.Grant) {
		time.Sleep(20 * time.Minute)
		again, err := m.Adopt(t.Context(), g.ID, g.Token)
		if err != nil || again.Fence != g.Fence || again.Token != g.Token {
			t.Fatalf("adopted %+v, %v", again, err)
		}
		time.Sleep(20 * time.Minute) // the lease was renewed
		if err := again.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := m.Adopt(t.Context(), g.ID, g.Token); lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
			t.Errorf("after release: %v", err)
		}
	})
}

func TestReaper(t *testing.T) {
	alone(t, "agent", func(t *testing.T, m *lock.Manager, s *unreachable, g *lock.Grant) {
		var failures atomic.Int32
		m.StartReaper(30*time.Second, func(error) { failures.Add(1) })
		synctest.Wait()
		s.cut.Store(true)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		s.cut.Store(false)
		if failures.Load() != 2 {
			t.Errorf("%d failures told, want 2", failures.Load())
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		events, err := m.Events(t.Context(), store.EventQuery{Limit: 1, Latest: true})
		if err != nil || len(events) != 1 || events[0].Kind != lockkeeper.EventExpired || events[0].GrantID != g.ID {
			t.Errorf("last event %+v, %v; want the expiry", events, err)
		}
	})
}

// Under the policy dal a kept grant is renewed every ten seconds from the first moment on. So
// its lease never comes near its end.
//
// shows: DL-15 DL-16
func TestHeartbeatsEveryTenSeconds(t *testing.T) {
	alone(t, "dal", func(t *testing.T, m *lock.Manager, _ *unreachable, g *lock.Grant) {
		g.Keep()
		start := time.Now()
		var beats []time.Duration
		last := g.HeartbeatAt
		for range 1_200 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			e, err := m.Request(t.Context(), g.ID)
			if err != nil || e == nil {
				t.Fatalf("the grant is gone: %v", err)
			}
			if left := time.Until(*e.ExpiresAt); left < 30*time.Second || left > 60*time.Second {
				t.Fatalf("the lease ends in %s", left)
			}
			if e.HeartbeatAt != last {
				beats, last = append(beats, time.Since(start).Round(time.Second)), e.HeartbeatAt
			}
		}
		for i, at := range beats {
			if want := time.Duration(i) * 10 * time.Second; at < want-time.Second || at > want+time.Second {
				t.Errorf("heartbeat %d came after %s, want %s", i+1, at, want)
			}
		}
		if len(beats) < 12 {
			t.Errorf("%d heartbeats in two minutes: %v", len(beats), beats)
		}
	})
}
