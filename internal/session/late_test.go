package session

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A prompt or a release during a command does not hide later changes by that command.
//
// shows: GP-5
func TestEndedTooSoon(t *testing.T) {
	for name, end := range map[string]func(context.Context, *Session) error{
		"prompt":  func(ctx context.Context, s *Session) error { _, err := s.EndAll(ctx); return err },
		"release": func(ctx context.Context, s *Session) error { return s.Release(ctx) },
	} {
		b := newBook(t)
		file := filepath.Join(b.app.Root.Dir(), "one")
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(os.WriteFile(file, []byte("before\n"), 0o644))
		b.in(t, Caller{ID: "a", Agent: "x"}, func(_ context.Context, s *Session) { claims(t, s, "one") })
		b.in(t, Caller{ID: "b", Agent: "x"}, func(ctx context.Context, s *Session) {
			must(s.Begin("1", Call{Command: "./later.sh"}))
			must(s.Begin("1", Call{Command: "./later.sh"})) // of a host without ids
			must(end(ctx, s))
			must(os.WriteFile(file, []byte("after\n"), 0o644))
			found, err := s.Compare(ctx, s.End("1", false), false)
			must(err)
			if len(found) != 1 || found[0].Path != "one" {
				t.Errorf("%s: found %+v", name, found)
			}
			if second, third := s.End("1", false), s.End("1", false); second.At == 0 || third.At != 0 {
				t.Errorf("%s: %+v, %+v", name, second, third)
			}
		})
	}
}
