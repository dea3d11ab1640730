package storetest

import (
	"errors"
	"fmt"
	"testing"

	"lockkeeper"
	"lockkeeper/store"
)

var errUndo = errors.New("undo this")

// turmoil makes every kind of change.
func turmoil(tx store.Tx) {
	kept, gone := get(tx.Get(ident(1))), get(tx.Get(ident(2)))
	changed := *kept
	changed.Holder, changed.Expires, changed.WaitsOn = "another holder", 99, 98
	fresh := draft(tx, ident(3), store.StateHeld, write("new/file"))
	check(tx.SetLocks(kept, write("elsewhere")))
	changed.Locks = write("elsewhere")
	tx.Wake(ident(1))
	land(tx, lockkeeper.Landing{Commit: "new", Changes: altered("new", "a", "b")})
	known := get(tx.Landings(store.LandingQuery{Commit: "known"}))
	check(tx.EndLanding(store.TakenLanding{Seq: known[0].Seq}, lockkeeper.Undone))
	check(errors.Join(tx.Save(&changed), tx.Delete(gone), tx.Delete(fresh), tx.SetDenial("k", 2), tx.SetDenial("new", 2)))
	queueTurmoil(tx)
	draft(tx, ident(2), store.StateWaiting, write("a"))
}

// testUndone runs turmoil in a transaction that fails in some way, and checks that nothing
// changed.
func testUndone(t *testing.T, f Fixture, fail func(store.Store)) {
	s := open(t, f, NewClock())
	update(t, s, func(tx store.Tx) {
		draft(tx, ident(1), store.StateHeld, write("a"))
		draft(tx, ident(2), store.StateHeld, read("b", "c/d"))
		land(tx, lockkeeper.Landing{Commit: "known", Changes: altered("known", "a")})
		queued(tx, lockkeeper.Item{ID: "known", Key: "known", Stage: lockkeeper.StageWaiting, WaitsOn: store.OnPath(lockkeeper.Write, "a"), CheckAt: 5})
		check(errors.Join(tx.TakeSlots("p", 1), tx.SetTurn("q", 1, 1), tx.PutWorker(lockkeeper.Worker{ID: "w"}), tx.SetDenial("k", 1)))
	})
	before := dump(t, s)
	listener := get(s.Listen(t.Context(), ident(1)))
	defer listener.Close()
	fail(s)
	if after := dump(t, s); after != before {
		t.Errorf("left behind:\n%s\nwant:\n%s", after, before)
	}
	select {
	case <-listener.Woken():
		t.Error("a transaction that was rolled back woke a listener")
	default:
	}
	update(t, s, turmoil) // the same changes committed: the space still works
	view(t, s, func(r store.Reader) {
		evs := get(r.Events(store.EventQuery{Limit: 100}))
		for i := 1; i < len(evs); i++ {
			if evs[i].Seq <= evs[i-1].Seq {
				t.Errorf("event %d after %d", evs[i].Seq, evs[i-1].Seq)
			}
		}
		if len(evs) != 8 {
			t.Errorf("%d events, want 8", len(evs))
		}
	})
}

// dump returns all state of a space that a transaction can read.
func dump(t *testing.T, s store.Store) (out string) {
	t.Helper()
	update(t, s, func(tx store.Tx) {
		for _, r := range get(all(tx)) {
			c := *r
			c.AcquiredAt, c.ExpiresAt, c.HeartbeatAt, c.Process = c.AcquiredAt.UTC(), c.ExpiresAt.UTC(), c.HeartbeatAt.UTC(), nil
			out += fmt.Sprintf("%+v\n", c)
		}
		for _, e := range get(tx.Events(store.EventQuery{Limit: 1000})) {
			out += fmt.Sprintf("%d %s %s\n", e.Seq, e.Kind, e.GrantID)
		}
		for _, path := range []string{"a", "b", "c/d", "new/file", "elsewhere"} {
			for _, o := range overlapping(tx, path) {
				out += fmt.Sprintf("%s blocks %s: %s %d\n", o.Lock, path, o.Record.ID, o.Record.Ticket)
			}
		}
		for _, l := range get(tx.Landings(store.LandingQuery{})) {
			l.At = l.At.UTC()
			out += fmt.Sprintf("%+v\n", *l)
		}
		out += fmt.Sprintf("denials %d and %d, waiting %d\n", get(tx.Denial("k")), get(tx.Denial("new")), len(get(tx.Waiters(98))))
		out += dumpQueue(tx)
	})
	return out
}

// shows: DL-3
func testRollbackOnError(t *testing.T, f Fixture) {
	testUndone(t, f, func(s store.Store) {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			turmoil(tx)
			return errUndo
		})
		if !errors.Is(err, errUndo) {
			t.Errorf("got %v, want the transaction's own error", err)
		}
	})
}

// shows: DL-3
func testRollbackOnPanic(t *testing.T, f Fixture) {
	testUndone(t, f, func(s store.Store) {
		defer func() {
			if r := recover(); r != errUndo {
				t.Errorf("recovered %v, want the panic of the transaction", r)
			}
		}()
		s.Update(t.Context(), func(tx store.Tx) error {
			turmoil(tx)
			panic(errUndo)
		})
	})
}

// queueTurmoil makes every kind of change to the queue.
func queueTurmoil(tx store.Tx) {
	next := get(tx.Item("known")).Clone()
	next.Stage, next.WaitsOn, next.CheckAt, next.Note = lockkeeper.StageReady, "", 0, "changed"
	check(tx.SaveItem(next))
	again := next.Clone()
	again.Stage, again.Status, again.CheckAt, again.Pools = lockkeeper.StageRunning, lockkeeper.ItemDispatched, 9, []string{"p"}
	queued(tx, lockkeeper.Item{ID: "new", Key: "new", Stage: lockkeeper.StageWaiting, WaitsOn: store.OnPool("p")})
	check(errors.Join(tx.SaveItem(again), tx.TakeSlots("p", 3), tx.TakeSlots("new", 1), tx.SetTurn("q", 1, 9), tx.SetTurn("new", 1, 1),
		tx.DeleteWorker("w"), tx.PutWorker(lockkeeper.Worker{ID: "new"})))
}

// dumpQueue returns all visible state that queueTurmoil changes.
func dumpQueue(tx store.Tx) (out string) {
	for _, it := range get(tx.Items(store.ItemQuery{Limit: 100})) {
		out += fmt.Sprintf("%+v\n", *plain(it))
	}
	for _, name := range []string{"known", "new"} {
		out += fmt.Sprintf("key %s: %v\n", name, get(tx.ItemWithKey(name)) != nil)
	}
	for _, status := range []lockkeeper.ItemStatus{lockkeeper.ItemQueued, lockkeeper.ItemDispatched} {
		out += fmt.Sprintf("%s: %v\n", status, numbers(get(tx.Items(store.ItemQuery{Status: status, Limit: 100}))))
	}
	return out + fmt.Sprintf("ready %v, keys %q, due %d, %+v, taken %d and %d, turn %d, workers %+v, on locks %v\n",
		get(tx.FirstReady("")) != nil, get(tx.WaitKeys("")), get(tx.NextCheck()), get(tx.Census()), get(tx.SlotsTaken("p")), get(tx.SlotsTaken("new")),
		get(tx.Turn("q", 1)), get(tx.Workers()), tx.AnyWaitsOnLock())
}
