package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"lockkeeper"
	"lockkeeper/store"
)

var txTests = []test{
	{"round trip of a record", testRoundTrip},
	{"save and set locks", testSave},
	{"records listed again", testListedAgain},
	{"delete", testDelete},
	{"list pages by ticket", testList},
	{"waiters in ticket order", testWaiters},
	{"denials", testDenials},
	{"an error undoes everything", testRollbackOnError},
	{"a panic undoes everything", testRollbackOnPanic},
	{"a view sees what is committed", testView},
	{"updates are serial", testSerial},
	{"a canceled context", testCanceled},
	{"a closed store", testClosed},
}

// shows: GP-32
func testDenials(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	update(t, s, func(tx store.Tx) {
		if d, err := tx.Denial("k"); d != 0 || err != nil {
			t.Errorf("unknown denial: %d, %v", d, err)
		}
		check(errors.Join(tx.SetDenial("k", 5), tx.SetDenial("k", 1<<64-1)))
	})
	update(t, s, func(tx store.Tx) {
		if d, err := tx.Denial("k"); d != 1<<64-1 || err != nil {
			t.Errorf("denial %d, %v", d, err)
		}
	})
}

// shows: DL-55 DL-58
func testView(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	other := s
	if f.Second != nil {
		other = second(t, f, s, clock)
	}
	update(t, s, func(tx store.Tx) { draft(tx, ident(1), store.StateHeld, write("a")) })
	if f.Second != nil { // with a single handle, a view may have to wait for the writer
		update(t, s, func(tx store.Tx) {
			draft(tx, ident(2), store.StateHeld, write("b"))
			view(t, other, func(r store.Reader) {
				if recs := get(r.List(0, 10)); len(recs) != 1 {
					t.Errorf("a view lists %d records while another is being written, want 1", len(recs))
				}
			})
		})
		if fetch(t, other, ident(2)) == nil {
			t.Error("a committed record is not seen")
		}
	}
	err := other.View(t.Context(), func(store.Reader) error { return errUndo })
	if !errors.Is(err, errUndo) {
		t.Errorf("got %v, want the view's own error", err)
	}
}

// shows: DL-4 SW-43
func testSerial(t *testing.T, f Fixture) {
	clock := NewClock()
	handles := openAll(t, f, clock)
	s := handles[0]
	const clients, rounds = 6, 25
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			h := handles[i%len(handles)]
			for range rounds {
				err := h.Update(t.Context(), func(tx store.Tx) error {
					n, err := tx.Denial("counter")
					if err != nil {
						return err
					}
					return tx.SetDenial("counter", n+1)
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	update(t, s, func(tx store.Tx) {
		n := get(tx.Denial("counter"))
		if n != clients*rounds {
			t.Errorf("counted to %d, want %d: updates were lost", n, clients*rounds)
		}
	})
}

func testCanceled(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran := false
	if err := s.Update(ctx, func(store.Tx) error { ran = true; return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("update: %v", err)
	}
	if err := s.View(ctx, func(store.Reader) error { ran = true; return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("view: %v", err)
	}
	if ran {
		t.Error("a transaction began under a context that had ended")
	}
	update(t, s, func(tx store.Tx) { draft(tx, ident(1), store.StateHeld, nil) })
}

func testClosed(t *testing.T, f Fixture) {
	s := f.Open(t, NewClock())
	must(t, s.Close())
	for what, err := range map[string]error{
		"update": s.Update(t.Context(), func(store.Tx) error { return nil }),
		"view":   s.View(t.Context(), func(store.Reader) error { return nil }),
	} {
		if lockkeeper.CodeOf(err) != lockkeeper.CodeStore {
			t.Errorf("%s of a closed store: %v", what, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}
