package session

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"lockkeeper"
)

// A change that a detached program makes to a held file is found while no session calls. The version of
// the holder is kept, and the holder is told with its next call. A holder that is not a session has its
// version kept if a command of a session may have made the change.
//
// shows: GP-5
func TestWatched(t *testing.T) {
	b := newBook(t)
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(b.at(path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept := func() (list []string) {
		t.Helper()
		all, err := b.app.Shelf().List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			list = append(list, e.Path+" "+e.Holder)
		}
		return list
	}
	holder := Caller{ID: "holder", Agent: "x", Process: newProcess(t)}
	var name string
	b.in(t, holder, func(ctx context.Context, s *Session) {
		name = s.Info().Callsign
		put("one", "before\n")
		claims(t, s, "one")
		put("one", "mine\n")
		if err := s.Left(ctx, Call{}, []string{"one"}); err != nil {
			t.Fatal(err)
		}
	})
	put("two", "a person's\n")
	_, err := b.app.Acquire(t.Context(), lockkeeper.Request{Holder: "ann", TTL: time.Hour,
		Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "two", Kind: lockkeeper.File}, Mode: lockkeeper.Write}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := watch{registry: b, left: map[string]Print{}}
	look := func() {
		t.Helper()
		if err := w.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	put("two", "her own next version\n")
	look()
	if list := kept(); len(list) != 0 {
		t.Fatalf("nothing was disturbed, and kept are %q", list)
	}
	b.in(t, Caller{ID: "other", Agent: "x", Process: newProcess(t)}, func(_ context.Context, s *Session) {
		if err := s.Begin("1", Call{Command: "./daemon.sh"}); err != nil {
			t.Fatal(err)
		}
		s.End("1", true)
	})
	put("one", "by a daemon\n")
	put("two", "by a daemon\n")
	look()
	look()
	if list := strings.Join(kept(), ", "); !strings.Contains(list, "one "+name) || !strings.Contains(list, "two ann") || strings.Count(list, ",") != 1 {
		t.Errorf("kept are %s", list)
	}
	b.in(t, holder, func(_ context.Context, s *Session) {
		if list := s.Notices(); len(list) != 1 || !strings.HasPrefix(list[0], "DISTURBED one") {
			t.Errorf("the holder is told %q", list)
		}
	})
}

// The watcher of a process begins to compare when that of another one ends, and ends with the work.
func TestWatchedByOne(t *testing.T) {
	b := newBook(t)
	fails := Watcher{Failed: func(err error) { t.Error(err) }}
	begun, end := make(chan bool), make(chan bool)
	done := make(chan error, 1)
	go func() {
		done <- b.Watched(t.Context(), fails, func(context.Context) error { begun <- true; <-end; return nil })
	}()
	<-begun
	if err := b.Watched(t.Context(), fails, func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	close(end)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
