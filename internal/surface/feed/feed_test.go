package feed_test

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
	"lockkeeper/store/sqlstore"
	"lockkeeper/store/storetest"
)

const space = "7f0c7a39-0000-4000-8000-000000000001"

var database = &storetest.Database{Prefix: "feed"}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { database.Drop() })) }

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// stores runs the test with each kind of store. Where possible, the test gets two connections: one is watched,
// the other writes.
func stores(t *testing.T, test func(t *testing.T, watched, written store.Store)) {
	t.Run("memory", func(t *testing.T) {
		s := memstore.New(space, memstore.Options{})
		test(t, s, s)
	})
	t.Run("SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "state.db")
		must(t, sqlstore.CreateSQLite(t.Context(), path, space))
		open := func() store.Store {
			s, err := sqlstore.OpenSQLite(t.Context(), path, space, sqlstore.Options{})
			must(t, err)
			t.Cleanup(func() { must(t, s.Close()) })
			return s
		}
		test(t, open(), open())
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url, err := database.URL()
		own := rand.Text() // all tests share one database
		must(t, err, sqlstore.CreateSpace(t.Context(), url, own))
		open := func() store.Store {
			s, err := sqlstore.OpenPostgres(t.Context(), url, own, sqlstore.Options{})
			must(t, err)
			t.Cleanup(func() { must(t, s.Close()) })
			return s
		}
		test(t, open(), open())
	})
}

// appendEvents appends n events.
func appendEvents(t testing.TB, s store.Store, n int) {
	t.Helper()
	for range n {
		must(t, s.Update(context.WithoutCancel(t.Context()), func(tx store.Tx) error {
			_, err := tx.Append(lockkeeper.Event{Kind: lockkeeper.EventRefused, At: tx.Now().Wall})
			return err
		}))
	}
}

// Every watcher sees every event once and in order, however slow other watchers are and however
// late it starts.
func TestEveryWatcherSeesAll(t *testing.T) {
	stores(t, func(t *testing.T, watched, written store.Store) {
		const before, meanwhile = 30, 200
		appendEvents(t, written, before)
		f, err := feed.Open(t.Context(), watched, feed.Options{Keep: 50})
		must(t, err)
		if f.Last() != before {
			t.Errorf("it begins at %d", f.Last())
		}
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				seen := uint64(0)
				for seen < before+meanwhile {
					events, err := f.Next(t.Context(), seen)
					if err != nil {
						t.Error(err)
						return
					}
					for _, ev := range events {
						if ev.Seq != seen+1 {
							t.Errorf("watcher %d: %d after %d", i, ev.Seq, seen)
							return
						}
						seen = ev.Seq
					}
					if i == 0 {
						time.Sleep(5 * time.Millisecond) // a slow watcher
					}
				}
			})
		}
		appendEvents(t, written, meanwhile)
		wg.Wait()
		must(t, f.Close())
		if _, err := f.Next(t.Context(), before+meanwhile); !errors.Is(err, feed.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// If the store can signal new events, a waiting watcher gets them at once.
func TestAWatcherIsTold(t *testing.T) {
	stores(t, func(t *testing.T, watched, written store.Store) {
		poll := 100 * time.Millisecond
		if _, ok := watched.(store.Watcher); ok {
			poll = time.Hour
		}
		f, err := feed.Open(t.Context(), watched, feed.Options{Poll: poll})
		must(t, err)
		defer f.Close()
		locks := lock.New(written, lock.Options{})
		defer locks.Close()
		for range 20 {
			after := f.Last()
			told := make(chan error, 1)
			go func() {
				_, err := f.Next(t.Context(), after)
				told <- err
			}()
			appendEvents(t, written, 1)
			select {
			case err := <-told:
				must(t, err)
			case <-time.After(5 * time.Minute):
				t.Fatal("the store did not signal it")
			}
		}
	})
}

// A wait can be canceled.
func TestGivingUp(t *testing.T) {
	s := memstore.New(space, memstore.Options{})
	f, err := feed.Open(t.Context(), s, feed.Options{})
	must(t, err)
	defer f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := f.Next(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// A watcher that starts after the log was pruned begins with the oldest remaining event.
func TestForgottenEvents(t *testing.T) {
	stores(t, func(t *testing.T, watched, written store.Store) {
		appendEvents(t, written, 30)
		f, err := feed.Open(t.Context(), watched, feed.Options{Keep: 5})
		must(t, err)
		defer f.Close()
		appendEvents(t, written, 20)
		must(t, written.Update(t.Context(), func(tx store.Tx) error { return tx.Prune(tx.Now().Wall.Add(-time.Hour), 10) }))
		for seen := uint64(0); seen < 50; {
			events, err := f.Next(t.Context(), seen)
			must(t, err)
			if len(events) == 0 || events[0].Seq <= seen {
				t.Fatalf("after %d came %v", seen, events)
			}
			seen = events[len(events)-1].Seq
		}
	})
}
