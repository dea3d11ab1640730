package sqlstore

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

func woken(b store.Listener) bool {
	select {
	case <-b.Woken():
		return true
	case <-time.After(hung):
		return false
	}
}

func wake(t *testing.T, s store.Store, id string) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx store.Tx) error { tx.Wake(id); return nil }); err != nil {
		t.Fatal(err)
	}
}

// A woken waiter finds the change that woke it.
//
// shows: GP-14
func TestWakeAfterCommit(t *testing.T) {
	sites(t, func(t *testing.T, s site) {
		st, other := s.store(t, Options{}), s.store(t, Options{})
		listener, err := other.Listen(t.Context(), "id")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		last := uint64(0)
		for range 30 {
			err := st.Update(t.Context(), func(tx store.Tx) error {
				tx.Wake("id")
				_, err := tx.Append(lockkeeper.Event{Kind: lockkeeper.EventDenied, At: tx.Now().Wall})
				select { // a wake-up sent before the commit would have arrived by now
				case <-listener.Woken():
					return errors.New("rung before the commit")
				case <-time.After(2 * time.Millisecond):
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if !woken(listener) {
				t.Fatal("the listener was not woken")
			}
			err = other.View(t.Context(), func(r store.Reader) error {
				ev, err := r.Events(store.EventQuery{After: last, Limit: 10})
				if len(ev) != 1 {
					return errors.Join(errors.New("woken before the commit could be seen"), err)
				}
				last = ev[0].Seq
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestBellOfTwoListeners(t *testing.T) {
	sites(t, func(t *testing.T, s site) {
		st := s.store(t, Options{})
		one := start(t, "listen", s, "id")
		two := start(t, "listen", s, "id")
		one.expect("listening")
		two.expect("listening")
		wake(t, st, "id")
		one.expect("rung")
		two.expect("rung")
		one.kill()
		wake(t, st, "id")
		two.expect("rung")
	})
}

// The next wake-up removes the pipe of a listener that was killed.
func TestBellOfDeadListener(t *testing.T) {
	s := sqliteSite(t)
	st := s.sqlite(t, Options{})
	dead := start(t, "listen", s, "id")
	dead.expect("listening")
	dead.kill()
	if left := listing(t, filepath.Join(st.wakeDir(), "id")); len(left) != 1 {
		t.Fatalf("pipes %v, want one to clean", left)
	}
	wake(t, st, "id")
	if left := listing(t, st.wakeDir()); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A wake-up after Listen returned is never lost, even if listeners open and close and wakers
// clean up at the same time.
func TestBellNeverLost(t *testing.T) {
	s := sqliteSite(t)
	st := s.sqlite(t, Options{})
	var others sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					wakeListeners(st.wakeDir(), "id")
				}
			}
		})
	}
	for range 100 {
		b, err := st.Listen(t.Context(), "id")
		if err != nil {
			t.Fatal(err)
		}
		if !woken(b) {
			t.Fatal("a ring was lost")
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	others.Wait()
	if left := listing(t, st.wakeDir()); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBellOfHostileName(t *testing.T) {
	st := sqliteSite(t).sqlite(t, Options{})
	for _, id := range []string{"", "..", ".hidden", "a/b", "../../x", "a\x00b"} {
		if b, err := st.Listen(t.Context(), id); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%q: %v, %v", id, b, err)
		}
		wake(t, st, id) // must not touch files outside the directory of listeners
	}
	if _, err := os.Stat(st.wakeDir()); err == nil {
		t.Error("a hostile name made something")
	}
}

// Listeners may miss wake-ups while the connection is down, so all are woken after a reconnect.
func TestBellAfterReconnect(t *testing.T) {
	s, p, _, px := outage(t, hung)
	var listeners []store.Listener
	for _, id := range []string{"a", "a", "b"} {
		b, err := p.Listen(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		listeners = append(listeners, b)
	}
	direct := s.postgres(t, Options{})
	wake(t, direct, "a")
	if !woken(listeners[0]) || !woken(listeners[1]) {
		t.Fatal("another process did not wake the listener")
	}
	px.refuse(true)
	px.cut()
	wake(t, direct, "a") // no listener receives it
	px.refuse(false)
	for i, b := range listeners {
		if !woken(b) {
			t.Errorf("listener %d is silent after a reconnect", i)
		}
	}
	wake(t, direct, "b")
	if !woken(listeners[2]) {
		t.Error("the listener was not woken over the new connection")
	}
}

// Without notifications a listener is woken from time to time, so its owner polls.
func TestBellWithoutServer(t *testing.T) {
	_, p, _, px := outage(t, 3*time.Second)
	px.refuse(true)
	px.cut()
	b, err := p.Listen(t.Context(), "id")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !woken(b) {
			t.Error("the listener was not woken while the server is away")
		}
	}
	px.refuse(false)
	eventually(t, func() error {
		return p.Update(t.Context(), func(tx store.Tx) error { tx.Wake("id"); return nil })
	})
	if !woken(b) {
		t.Error("the listener was not woken")
	}
	if err := errors.Join(b.Close(), p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	if _, err := p.Listen(t.Context(), "id"); err == nil {
		t.Error("a closed store gave a listener that nothing wakes")
	}
}
