package gate_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/store/storetest"
)

// A hostile process keeps exchanging a directory for other things: a link out of the root, a link
// into a forbidden part, and a directory outside the root. Nothing is left written outside, nothing
// that existed there is lost, and every reported landing is in the tree.
//
// shows: SW-35 SW-38
func TestSwappedDirectory(t *testing.T) {
	rounds := storetest.Times(500, 2_000)
	inMemory(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 1))
	outside := t.TempDir()
	w := newWorld(t, map[string]string{"test/spot/f": "0", "test/spot/sub/g": "0", "lib/f": "sentinel", "lib/sub/g": "sentinel"}, gate.Options{})
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("sentinel"), 0o644), os.Mkdir(filepath.Join(outside, "sub"), 0o755),
		os.Symlink(outside, filepath.Join(outside, "away")), os.Symlink(outside, w.in("test/out")), os.Symlink("../lib", w.in("test/lib")))
	before, lib := scan(t, outside), scan(t, w.in("lib"))
	paths := []string{"test/spot/f", "test/spot/sub/g", "test/spot/new", "test/spot/fresh/h"}

	calm := keepSwapping(t, w.in("test/spot"), w.in("test/out"), w.in("test/lib"), filepath.Join(outside, "away"))
	refused := 0
	var was map[string]string
	calm(func() { was = w.files() })
	for n := range rounds {
		content := fmt.Sprint(n + 1)
		var changes []gate.Change
		for _, path := range paths {
			switch draw.IntN(4) {
			case 0, 1:
				changes = append(changes, gate.Put(path, []byte(content)))
			case 2:
				changes = append(changes, gate.Delete(path))
			}
		}
		if len(changes) == 0 {
			continue
		}
		g := w.hold("otter", slices.Concat(paths, []string{"lib/f", "lib/sub/g", "lib/new", "lib/fresh/h"})...)
		_, err := w.gate.Commit(t.Context(), &g.Grant, changes)
		if code := lockkeeper.CodeOf(err); err != nil && code != lockkeeper.CodeViolation && code != lockkeeper.CodeInput {
			t.Fatalf("round %d: %v", n, err)
		}
		want := maps.Clone(was)
		for _, c := range changes {
			if want[c.Path] = content; c.Delete {
				delete(want, c.Path)
			}
		}
		var now map[string]string
		calm(func() { now = w.files() })
		switch {
		case err == nil && !maps.Equal(now, want):
			t.Fatalf("round %d: landed %v on %v, found %v", n, changes, was, now)
		case err != nil:
			refused++
			for _, path := range paths {
				if now[path] != was[path] {
					t.Fatalf("round %d: %v; %s was %q, is %q", n, err, path, was[path], now[path])
				}
			}
		}
		was = now
		w.releases(g)
		if t.Failed() {
			t.Fatalf("round %d: %v", n, err)
		}
	}
	if refused == 0 || refused == rounds {
		t.Errorf("%d of %d rounds were refused: no landing ran during a swap", refused, rounds)
	}
	t.Logf("%d of %d rounds were refused", refused, rounds)
	calm(func() {
		for _, d := range append(differences(before, scan(t, outside)), differences(lib, scan(t, w.in("lib")))...) {
			t.Error(d)
		}
		for path := range w.files() {
			if !slices.Contains(paths, path) && !strings.HasPrefix(path, "lib/") {
				t.Errorf("%s should not be there", path)
			}
		}
	})
	w.noStages()
}

// inMemory runs a test on an in-memory disk if there is one. It suits tests of many rounds that
// do not depend on durability.
func inMemory(t testing.TB) {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", shm)
	}
}

// keepSwapping exchanges a directory for links, one after the other, until the test ends. calm
// runs a function while the directory is in its place.
func keepSwapping(t *testing.T, spot string, links ...string) (calm func(func())) {
	exchange := func(a, b string) error {
		return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	}
	var mu sync.Mutex
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; !done.Load(); n++ {
			mu.Lock()
			err := exchange(spot, links[n%len(links)])
			for range n % 7 * 10 {
				runtime.Gosched()
			}
			err = errors.Join(err, exchange(spot, links[n%len(links)]))
			mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			for range n % 5 * 20 {
				runtime.Gosched()
			}
		}
	})
	t.Cleanup(func() {
		done.Store(true)
		wg.Wait()
	})
	return func(act func()) {
		mu.Lock()
		defer mu.Unlock()
		act()
	}
}
