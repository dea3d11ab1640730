package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

var raceTests = []test{
	{"one of many wins", testOneWins},
	{"heartbeat against reaper", testHeartbeatReaper},
	{"a judgment that is out of date", testOutdated},
	{"withdrawing against promotion", testWithdrawPromote},
	{"the time limit passes as the grant comes", testTimeUp},
	{"a context ends with its grant", testContextEnds},
}

// managers returns managers on different handles of one space, if the store has several.
func (b *bench) managers(f Fixture) []*lock.Manager {
	ms := []*lock.Manager{b.m}
	if f.Second != nil {
		ms = append(ms, b.manager(second(b.T, f, b.store, b.clock), lock.Options{}))
	}
	return ms
}

// shows: SW-43 DL-12
func testOneWins(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	ms := append(b.managers(f), b.manager(yielding(b.store), lock.Options{}))
	for range f.Rounds / 4 {
		var won atomic.Pointer[lock.Grant]
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				g, err := ms[i%len(ms)].TryAcquire(b.ctx, asks(fmt.Sprint(i), "", write("a", fmt.Sprint("own", i))))
				if lock.IsBlocked(err) {
					return
				}
				if err != nil {
					t.Error(err)
				} else if !won.CompareAndSwap(nil, g) {
					t.Errorf("both %s and %s hold", won.Load().Holder, g.Holder)
				}
			})
		}
		wg.Wait()
		g := won.Load()
		if g == nil {
			t.Fatal("no request won")
		}
		b.release(g)
	}
	b.sound()
}

// shows: DL-18
func testHeartbeatReaper(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	ms := b.managers(f)
	for round := range f.Rounds {
		g := b.takes(asks("h", "dal", write("a")))
		b.clock.Advance(2 * time.Minute) // the grant is stale, and the first transaction decides about it
		var renewed, lost, freed atomic.Int32
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 4 {
			m := ms[i%len(ms)]
			wg.Go(func() {
				<-start
				_, err := m.Renew(b.ctx, g.ID, g.Token)
				switch {
				case err == nil:
					renewed.Add(1)
				case lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld:
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
			wg.Go(func() {
				<-start
				n, err := m.Recover(b.ctx)
				if err != nil {
					t.Error(err)
				}
				freed.Add(int32(n))
			})
		}
		close(start)
		wg.Wait()
		there := b.get(g.ID) != nil
		switch {
		case freed.Load() == 0 && renewed.Load() == 4 && there:
			b.release(g)
		case freed.Load() == 1 && lost.Load() == 4 && !there:
		default:
			t.Fatalf("round %d: freed %d times, renewed %d times, lost %d times, there: %v", round, freed.Load(), renewed.Load(), lost.Load(), there)
		}
	}
}

// A between is a store that calls the function act before one of the caller's transactions, after
// the read or the wait that led to it.
type between struct {
	store.Store
	skip int // number of transactions to pass before act is called
	act  func()
}

func (s *between) Update(ctx context.Context, fn func(store.Tx) error) error {
	if s.skip == 0 {
		s.act()
	}
	s.skip--
	return s.Store.Update(ctx, fn)
}

// A following is a store that calls the function act after each transaction that changed something.
type following struct {
	store.Store
	act func()
}

func (s following) Update(ctx context.Context, fn func(store.Tx) error) error {
	err := s.Store.Update(ctx, fn)
	s.act()
	return err
}

// yielding returns a store that lets other goroutines run after each transaction, so that
// decisions in one transaction about what another one read are found out. A store with a
// fast path is returned as it is.
func yielding(s store.Store) store.Store {
	if _, ok := s.(store.FastPath); ok {
		return s
	}
	return following{s, runtime.Gosched}
}

// shows: DL-18 GP-32
func testOutdated(t *testing.T, f Fixture) {
	for what, act := range map[string]func(*bench, *lock.Grant) error{
		"a heartbeat": func(b *bench, g *lock.Grant) error { _, err := b.m.Renew(b.ctx, g.ID, g.Token); return err },
		"a process": func(b *bench, g *lock.Grant) error {
			_, err := b.m.SetProcess(b.ctx, g.ID, g.Token, lockkeeper.Process{PID: 1})
			return err
		},
	} {
		for how, free := range map[string]func(*bench, *lock.Manager, *lock.Grant){
			"a reaper": func(b *bench, m *lock.Manager, _ *lock.Grant) {
				if n, err := m.Recover(b.ctx); n != 0 || err != nil {
					t.Errorf("%s came first: recovered %d, %v", what, n, err)
				}
			},
			"a person": func(b *bench, m *lock.Manager, g *lock.Grant) {
				person := lockkeeper.Actor{Name: "Ada", Kind: lockkeeper.ActorPerson}
				if err := m.ForceRelease(b.ctx, g.ID, person, "why not"); !isRefused(err) {
					t.Errorf("%s came first: forced with %v", what, err)
				}
			},
		} {
			b := newBench(t, f, lock.Options{})
			g := b.takes(asks("h", "dal", write("a")))
			b.clock.Advance(2 * time.Minute)
			st := &between{Store: b.store, act: func() {
				if err := act(b, g); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}}
			free(b, b.manager(st, lock.Options{}), g)
			if b.get(g.ID) == nil {
				t.Errorf("%s came before %s, and the grant is gone", what, how)
			}
		}
	}
}

// shows: SW-71
func testWithdrawPromote(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	ms := b.managers(f)
	for i := range f.Rounds {
		g := b.takes(asks("h", "", write("a")))
		ctx, cancel := context.WithCancel(b.ctx)
		var wg sync.WaitGroup
		wg.Go(func() {
			got, err := ms[i%len(ms)].Acquire(ctx, asks("w", "", write("a")), wakeWithin)
			switch {
			case err == nil:
				if err := got.Release(b.ctx); err != nil {
					t.Error(err)
				}
			case !errors.Is(err, context.Canceled):
				t.Error(err)
			}
		})
		wg.Go(cancel)
		b.release(g)
		wg.Wait()
	}
	b.release(b.takes(asks("k", "", write("a")))) // nothing was left behind
	if entries, err := b.m.Requests(b.ctx); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %+v, %v", entries, err)
	}
}

// If a grant arrives just as the time of a waiter is up, the waiter takes it.
func testTimeUp(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	h := b.takes(asks("h", "", write("a")))
	st := &between{Store: b.store, skip: 1, act: func() { b.release(h) }}
	g := get(b.manager(st, lock.Options{}).Acquire(b.ctx, asks("w", "", write("a")), 0))
	b.blocked(asks("k", "", write("a")))
	b.release(g)
	b.sound()
}

func testContextEnds(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	ms := b.managers(f)
	g := b.takes(asks("h", "", write("a")))
	kept := b.takes(asks("h", "", write("b")))
	kept.Keep()
	must(t, ms[len(ms)-1].ForceRelease(b.ctx, g.ID, lockkeeper.Actor{Name: "Ada", Kind: lockkeeper.ActorPerson}, "now"))
	select {
	case <-g.Context().Done():
	case <-time.After(wakeWithin):
		t.Fatal("the context of a grant that was taken away does not end")
	}
	if err := context.Cause(g.Context()); lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
		t.Errorf("cause %v", err)
	}
	ctx := kept.Context()
	if err := ctx.Err(); err != nil {
		t.Errorf("the context of a held grant ended: %v", err)
	}
	b.release(kept)
	<-ctx.Done()
	if err := context.Cause(ctx); err != lock.ErrReleased {
		t.Errorf("cause %v, want released", err)
	}
	if n := len(b.events(lockkeeper.EventRenewFailed)); n != 0 {
		t.Errorf("%d failed renewals recorded for an ordinary release", n)
	}
}
