package session

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lockkeeper"
)

// Changes by a command below a directory that another session holds are found. Changed and new
// files are reported by name, removed ones by their directory.
//
// shows: GP-5 CF-15
func TestBelowAHeldDirectory(t *testing.T) {
	b := newBook(t)
	at := func(p string) string { return filepath.Join(b.app.Root.Dir(), p) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"registry/one", "registry/deep/two", "registry/three/gone", "registry/.git/index", "beside"} {
		must(os.MkdirAll(filepath.Dir(at(p)), 0o755))
		must(os.WriteFile(at(p), []byte("before\n"), 0o644))
	}
	_, err := b.app.Acquire(t.Context(), lockkeeper.Request{Holder: "ada", Policy: "author", TTL: time.Hour,
		Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "registry", Kind: lockkeeper.Dir}, Mode: lockkeeper.Write}}}, 0)
	must(err)
	tick(t)
	b.in(t, Caller{ID: "b", Agent: "x"}, func(ctx context.Context, s *Session) {
		compare := func(command string, want ...string) {
			t.Helper()
			found, err := s.Compare(ctx, s.End("1", false), true)
			must(err)
			var paths []string
			for _, u := range found {
				paths = append(paths, u.Path)
				if u.Holder.Name() == "" || u.Doubt == "" || u.Back {
					t.Errorf("%s: %+v", command, u)
				}
			}
			if slices.Sort(paths); !slices.Equal(paths, want) {
				t.Errorf("%s: found %v, want %v", command, paths, want)
			}
		}
		must(s.Begin("1", Call{Command: "make nothing"}))
		compare("nothing")
		must(s.Begin("1", Call{Command: "make"}))
		for _, p := range []string{"registry/deep/two", "registry/new", "registry/.git/index", "beside"} {
			must(os.WriteFile(at(p), []byte("after\n"), 0o644))
		}
		must(os.Remove(at("registry/three/gone")))
		compare("changes", "registry", "registry/deep/two", "registry/new", "registry/three")
		must(s.Begin("1", Call{Command: "make"}))
		compare("told already")

		// A directory that was prepared long before replaces another.
		must(os.MkdirAll(at("other/deep"), 0o755))
		must(os.WriteFile(at("other/deep/two"), []byte("theirs\n"), 0o644))
		tick(t)
		must(s.Begin("1", Call{Command: "mv"}))
		must(os.Rename(at("registry"), at("old")))
		must(os.Rename(at("other"), at("registry")))
		compare("moved", "registry")

		// A new file in the same directory does not hide a removal.
		tick(t)
		must(s.Begin("1", Call{Command: "make"}))
		must(os.WriteFile(at("registry/deep/new"), []byte("new\n"), 0o644))
		must(os.Remove(at("registry/deep/two")))
		compare("masked", "registry/deep", "registry/deep/new")

		must(os.Mkdir(at("registry/odd"), 0o755))
		must(os.WriteFile(at("registry/odd/no text \xff"), []byte("before\n"), 0o644))
		tick(t)
		must(s.Begin("1", Call{Command: "make"}))
		must(os.WriteFile(at("registry/odd/no text \xff"), []byte("after\n"), 0o644))
		compare("a name that cannot be told", "registry/odd")
	})
}

// tick waits until the clock that stamps files is past the present, so that later files are
// newer. On a busy machine that clock is several ticks behind, and the kernel may stamp a file
// with the precise time.
func tick(t *testing.T) {
	t.Helper()
	began, now := time.Now().UnixNano(), int64(0)
	var err error
	for now <= began && err == nil {
		now, err = fileClock()
	}
	if err != nil {
		t.Fatal(err)
	}
}
