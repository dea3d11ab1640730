package session

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/git"
)

// While another holder reads files, replacing their directory and git commands that rewrite them
// are refused, as for a writer.
//
// shows: GP-5
func TestReadersAreNotRewritten(t *testing.T) {
	b := newBook(t)
	if err := os.Mkdir(filepath.Join(b.app.Root.Dir(), "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := b.app.Acquire(t.Context(), lockkeeper.Request{Holder: "reader", TTL: time.Hour,
		Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "sub/one", Kind: lockkeeper.File}, Mode: lockkeeper.Read}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := func(context.Context) (git.Reach, error) { return git.Reach{All: true}, nil }
	b.in(t, Caller{ID: "a", Agent: "x"}, func(ctx context.Context, s *Session) {
		if no, err := s.Taken(ctx, []string{filepath.Join(b.app.Root.Dir(), "sub")}, nil); err != nil || len(no) != 1 {
			t.Errorf("the directory may go: %v, %v", no, err)
		}
		if no, err := s.Rewrite(ctx, Rewriting{Act: "git checkout", Dir: b.app.Root.Dir(), Reach: all}); err != nil || len(no) != 1 {
			t.Errorf("git may rewrite it: %v, %v", no, err)
		}
	})
}
