package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

var auditTests = []test{
	{"every change is an event", testEveryChange},
	{"a refusal is recorded once", testDenyOnce},
	{"the blockers of a waiter are recorded once", testWaitingOnce},
	{"forcing", testForce},
	{"a recovery that cannot be recorded", testUnrecordedRecovery},
}

// shows: GP-44
func testEveryChange(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "dal", upgradeable("a")))
	w := b.waits(asks("w", "dal", write("a")))
	x := b.waits(asks("x", "dal", write("a")))
	must(b, b.upgrade(g, "a"))
	must(b, b.extend(g, write("b")...))
	must(t, x.Leave(b.ctx))
	b.release(g)
	b.isServed(w)
	var got []string
	b.view(func(r store.Reader) {
		evs := get(r.Events(store.EventQuery{Limit: 100}))
		for _, e := range evs {
			got = append(got, string(e.Kind)+" "+e.Holder)
			if e.At.IsZero() || e.Actor.Kind == "" || e.GrantID == "" {
				t.Errorf("event without when, who or what: %+v", e)
			}
		}
	})
	want := []string{"acquired h", "waiting w", "waiting x", "upgraded h", "extended h", "withdrawn x", "released h", "acquired w"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q\nwant   %q", got, want)
	}
}

// shows: DL-74
func testDenyOnce(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	denials := func(want int) {
		t.Helper()
		if ev := b.events(lockkeeper.EventDenied); len(ev) != want || len(ev[want-1].Conflicts) == 0 {
			t.Errorf("denials %+v, want %d", ev, want)
		}
	}
	ask := asks("k", "", write("a", "b"))
	one := b.takes(asks("h", "", write("a")))
	for range 3 {
		b.blocked(ask)
	}
	denials(1)
	b.blocked(asks("l", "", write("a", "b"))) // another holder
	b.blocked(asks("k", "", write("a")))      // another request
	denials(3)
	two := b.takes(asks("h", "", write("b")))
	b.blocked(ask)
	b.blocked(ask)
	denials(4)
	b.release(one)
	b.blocked(ask)
	denials(5)
	b.release(two)
	b.release(b.takes(ask))
	b.takes(asks("h", "", write("a")))
	b.blocked(ask)
	denials(6)
}

func testWaitingOnce(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	one, two := b.takes(asks("one", "", write("a"))), b.takes(asks("two", "", write("b")))
	w := b.waits(asks("w", "", write("a", "b")))
	for range 3 {
		b.stillWaits(w)
	}
	told := func(want, conflicts int) {
		t.Helper()
		if ev := b.events(lockkeeper.EventWaiting); len(ev) != want || len(ev[want-1].Conflicts) != conflicts {
			t.Errorf("told %+v, want %d times", ev, want)
		}
	}
	told(1, 2)
	b.release(two)
	b.stillWaits(w)
	told(2, 1)
	b.release(one)
	b.isServed(w)
	told(2, 1)
}

// An unrecorded is a store that cannot record that a grant was taken from its holder.
type unrecorded struct{ store.Store }

func (s unrecorded) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error { return fn(unrecordedTx{tx}) })
}

type unrecordedTx struct{ store.Tx }

func (tx unrecordedTx) Append(ev lockkeeper.Event) (uint64, error) {
	switch ev.Kind {
	case lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased:
		return 0, errUndo
	}
	return tx.Tx.Append(ev)
}

// shows: DL-18 DL-76
func testUnrecordedRecovery(t *testing.T, f Fixture) {
	for _, policy := range []string{"dal", "agent"} {
		b := newBench(t, f, lock.Options{})
		g := b.takes(asks("h", policy, write("a")))
		b.clock.Advance(time.Hour)
		m := b.manager(unrecorded{b.store}, lock.Options{})
		if n, err := m.Recover(b.ctx); n != 0 || !errors.Is(err, errUndo) {
			t.Errorf("%s: recovered %d, %v", policy, n, err)
		}
		if got, err := m.TryAcquire(b.ctx, asks("k", "", write("a"))); got != nil || !errors.Is(err, errUndo) {
			t.Errorf("%s: got %+v, %v", policy, got, err)
		}
		if err := m.ForceRelease(b.ctx, g.ID, lockkeeper.Actor{Name: "root", Kind: lockkeeper.ActorAdmin}, "now"); !errors.Is(err, errUndo) {
			t.Errorf("%s: forced: %v", policy, err)
		}
		if b.get(g.ID) == nil {
			t.Errorf("%s: the grant was freed without a record", policy)
		}
		b.recover(1)
	}
}

// shows: DL-7 DL-72 CF-14
func testForce(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "", write("a")))
	w := b.waits(asks("w", "", write("a")))
	for _, kind := range []lockkeeper.ActorKind{lockkeeper.ActorAgent, lockkeeper.ActorHolder, lockkeeper.ActorSystem, ""} {
		if err := b.m.ForceRelease(b.ctx, g.ID, lockkeeper.Actor{Name: "claude", Kind: kind}, "I need it"); !isRefused(err) {
			t.Errorf("as %q: %v", kind, err)
		}
	}
	if ev := b.events(lockkeeper.EventRefused); len(ev) != 4 || ev[0].Actor.Name != "claude" || ev[0].GrantID != g.ID {
		t.Errorf("refusals recorded: %+v", ev)
	}
	person := lockkeeper.Actor{Name: "Ada", Kind: lockkeeper.ActorPerson}
	b.wants(lockkeeper.CodeInput, b.m.ForceRelease(b.ctx, g.ID, person, ""), "without a reason")
	b.stillWaits(w)
	must(t, b.m.ForceRelease(b.ctx, g.ID, person, "it hangs"))
	b.isServed(w)
	b.wants(lockkeeper.CodeNotHeld, b.renew(g), "renewing a grant that was taken away")
	b.wants(lockkeeper.CodeNotHeld, b.m.ForceRelease(b.ctx, g.ID, person, "again"), "twice")
}
