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
func turmoil(tx store.Tx) error {
	kept, err := tx.Get(ident(1))
	if err != nil {
		return err
	}
	gone, err := tx.Get(ident(2))
	if err != nil {
		return err
	}
	changed := *kept
	changed.Holder, changed.Expires, changed.WaitsOn = "another holder", 99, 98
	fresh, err := draft(tx, ident(3), store.StateHeld, write("new/file"))
	if err != nil {
		return err
	}
	if err := tx.SetLocks(kept, write("elsewhere")); err != nil {
		return err
	}
	changed.Locks = write("elsewhere")
	tx.Wake(ident(1))
	if _, err := land(tx, lockkeeper.Landing{Commit: "new", Changes: altered("new", "a", "b")}); err != nil {
		return err
	}
	known, err := tx.Landings(store.LandingQuery{Commit: "known"})
	if err != nil {
		return err
	}
	if err := tx.EndLanding(store.TakenLanding{Seq: known[0].Seq}, lockkeeper.Undone); err != nil {
		return err
	}
	if err := errors.Join(tx.Save(&changed), tx.Delete(gone), tx.Delete(fresh),
		tx.SetDenial("k", 2), tx.SetDenial("new", 2)); err != nil {
		return err
	}
	if err := queueTurmoil(tx); err != nil {
		return err
	}
	_, err = draft(tx, ident(2), store.StateWaiting, write("a"))
	return err
}

// testUndone runs turmoil in a transaction that fails in some way, and checks that nothing
// changed.
func testUndone(t *testing.T, f Fixture, fail func(s store.Store, fn func(store.Tx) error)) {
	s := open(t, f, NewClock())
	update(t, s, func(tx store.Tx) error {
		_, err1 := draft(tx, ident(1), store.StateHeld, write("a"))
		_, err2 := draft(tx, ident(2), store.StateHeld, read("b", "c/d"))
		_, err3 := land(tx, lockkeeper.Landing{Commit: "known", Changes: altered("known", "a")})
		_, err4 := queued(tx, lockkeeper.Item{ID: "known", Key: "known", Stage: lockkeeper.StageWaiting, WaitsOn: store.OnPath(lockkeeper.Write, "a"), CheckAt: 5})
		return errors.Join(err1, err2, err3, err4, tx.TakeSlots("p", 1), tx.SetTurn("q", 1, 1), tx.PutWorker(lockkeeper.Worker{ID: "w"}), tx.SetDenial("k", 1))
	})
	before := dump(t, s)
	listener, err := s.Listen(t.Context(), ident(1))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	fail(s, turmoil)
	if after := dump(t, s); after != before {
		t.Errorf("left behind:\n%s\nwant:\n%s", after, before)
	}
	select {
	case <-listener.Woken():
		t.Error("a transaction that was rolled back woke a listener")
	default:
	}
	update(t, s, turmoil) // the same changes committed: the space still works
	view(t, s, func(r store.Reader) error {
		evs, err := r.Events(store.EventQuery{Limit: 100})
		for i := 1; i < len(evs); i++ {
			if evs[i].Seq <= evs[i-1].Seq {
				t.Errorf("event %d after %d", evs[i].Seq, evs[i-1].Seq)
			}
		}
		if len(evs) != 8 {
			t.Errorf("%d events, want 8", len(evs))
		}
		return err
	})
}

// dump returns all state of a space that a transaction can read.
func dump(t *testing.T, s store.Store) (out string) {
	t.Helper()
	update(t, s, func(tx store.Tx) error {
		recs, err := all(tx)
		if err != nil {
			return err
		}
		for _, r := range recs {
			c := *r
			c.AcquiredAt, c.ExpiresAt, c.HeartbeatAt, c.Process = c.AcquiredAt.UTC(), c.ExpiresAt.UTC(), c.HeartbeatAt.UTC(), nil
			out += fmt.Sprintf("%+v\n", c)
		}
		evs, err := tx.Events(store.EventQuery{Limit: 1000})
		for _, e := range evs {
			out += fmt.Sprintf("%d %s %s\n", e.Seq, e.Kind, e.GrantID)
		}
		for _, path := range []string{"a", "b", "c/d", "new/file", "elsewhere"} {
			found, _, err := tx.Overlapping(store.Query{Locks: write(path), Before: store.AnyTicket})
			if err != nil {
				return err
			}
			for _, o := range found {
				out += fmt.Sprintf("%s blocks %s: %s %d\n", o.Lock, path, o.Record.ID, o.Record.Ticket)
			}
		}
		landings, err3 := tx.Landings(store.LandingQuery{})
		for _, l := range landings {
			l.At = l.At.UTC()
			out += fmt.Sprintf("%+v\n", *l)
		}
		for _, key := range []string{"k", "new"} {
			d, err := tx.Denial(key)
			if err != nil {
				return err
			}
			out += fmt.Sprintf("denial %s %d\n", key, d)
		}
		for _, on := range []uint64{98} {
			waiters, err := tx.Waiters(on)
			if err != nil {
				return err
			}
			out += fmt.Sprintf("waiting on %d: %d\n", on, len(waiters))
		}
		items, err4 := dumpQueue(tx)
		out += items
		return errors.Join(err, err3, err4)
	})
	return out
}

// shows: DL-3
func testRollbackOnError(t *testing.T, f Fixture) {
	testUndone(t, f, func(s store.Store, fn func(store.Tx) error) {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			if err := fn(tx); err != nil {
				t.Error(err)
			}
			return errUndo
		})
		if !errors.Is(err, errUndo) {
			t.Errorf("got %v, want the transaction's own error", err)
		}
	})
}

// shows: DL-3
func testRollbackOnPanic(t *testing.T, f Fixture) {
	testUndone(t, f, func(s store.Store, fn func(store.Tx) error) {
		defer func() {
			if r := recover(); r != errUndo {
				t.Errorf("recovered %v, want the panic of the transaction", r)
			}
		}()
		s.Update(t.Context(), func(tx store.Tx) error {
			if err := fn(tx); err != nil {
				t.Error(err)
			}
			panic(errUndo)
		})
	})
}
