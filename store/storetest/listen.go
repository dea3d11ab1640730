package storetest

import (
	"errors"
	"testing"
	"time"

	"lockkeeper/store"
)

var listenTests = []test{
	{"wakes after commit", testWakesListener},
	{"is silent after rollback", testSilentAfterRollback},
	{"of a closed listener", testClosedListener},
}

// wakeWithin is the time limit for a wake-up. It is long, so that only a missing wake-up fails.
const wakeWithin = 5 * time.Minute

func heard(b store.Listener, within time.Duration) bool {
	select {
	case <-b.Woken():
		return true
	case <-time.After(within):
		return false
	}
}

// pairs returns the combinations of a waking and a listening handle: the same handle, and two
// handles.
func pairs(t *testing.T, f Fixture) map[string][2]store.Store {
	clock := NewClock()
	s := open(t, f, clock)
	p := map[string][2]store.Store{"one handle": {s, s}}
	if f.Second != nil {
		o := second(t, f, s, clock)
		p["there"], p["back"] = [2]store.Store{s, o}, [2]store.Store{o, s}
	}
	return p
}

// shows: GP-14
func testWakesListener(t *testing.T, f Fixture) {
	for name, p := range pairs(t, f) {
		listener := get(p[1].Listen(t.Context(), ident(1)))
		update(t, p[0], func(tx store.Tx) {
			tx.Wake(ident(1))
			tx.Wake(ident(1))
			tx.Wake(ident(2))
		})
		if !heard(listener, wakeWithin) {
			t.Errorf("%s: the listener was not woken", name)
		}
		update(t, p[0], func(tx store.Tx) { tx.Wake(ident(1)) })
		if !heard(listener, wakeWithin) {
			t.Errorf("%s: the listener was not woken again", name)
		}
		must(t, listener.Close())
	}
}

// testSilentAfterRollback refuses spurious wake-ups, although the contract allows them, because
// each costs a transaction. A later wake-up marks the time by which an earlier one would have
// arrived.
func testSilentAfterRollback(t *testing.T, f Fixture) {
	for name, p := range pairs(t, f) {
		undone := get(p[1].Listen(t.Context(), ident(1)))
		kept := get(p[1].Listen(t.Context(), ident(2)))
		p[0].Update(t.Context(), func(tx store.Tx) error { tx.Wake(ident(1)); return errUndo })
		update(t, p[0], func(tx store.Tx) { tx.Wake(ident(2)) })
		if !heard(kept, wakeWithin) {
			t.Errorf("%s: the listener was not woken", name)
		}
		if heard(undone, 0) {
			t.Errorf("%s: a transaction that was rolled back woke the listener", name)
		}
		must(t, errors.Join(undone.Close(), kept.Close()))
	}
}

func testClosedListener(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	one := get(s.Listen(t.Context(), ident(1)))
	two := get(s.Listen(t.Context(), ident(1)))
	must(t, one.Close())
	update(t, s, func(tx store.Tx) { tx.Wake(ident(1)) })
	if !heard(two, wakeWithin) {
		t.Error("closing one listener silenced another of the same id")
	}
	must(t, two.Close())
	update(t, s, func(tx store.Tx) { tx.Wake(ident(1)) })
}
