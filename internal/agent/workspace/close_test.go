package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Close removes the workspace and nothing else, whatever an agent left in it.
func TestCloseRemovesAll(t *testing.T) {
	root := newRepository(t)
	before := contents(t, root)
	long := strings.Repeat("n", 255)
	for name, leave := range map[string]func(t *testing.T, w *Workspace){
		"nothing":     func(*testing.T, *Workspace) {},
		"a deep tree": func(t *testing.T, w *Workspace) { dig(t, tree(t, w), 3000, long[:100], long) },
		"odd files": func(t *testing.T, w *Workspace) {
			sh(t, w, "mkfifo pipe; ln -s "+root+" shared; ln -s "+root+"/new.rb new; mkdir -p 'a\nb'/\"$(printf '\\377')\"; : > removed-1; mkdir -p ../removed-2/x")
			write(t, tree(t, w), long+"/"+long+"/"+long, "x")
		},
		"read-only directories": func(t *testing.T, w *Workspace) {
			sh(t, w, "mkdir -p ro/ro/ro; touch ro/ro/ro/x; find ro -depth -exec chmod 0 {} +; chmod 555 . ..")
		},
		"a wide tree": func(t *testing.T, w *Workspace) {
			sh(t, w, "for i in 1 2 3 4 5 6 7 8 9; do mkdir -p w/$i/a/b w/$i/c/d; touch w/$i/a/b/x w/$i/y; done")
		},
		"nothing at all": func(t *testing.T, w *Workspace) { must(t, os.RemoveAll(w.Home())) },
		"its directory moved": func(t *testing.T, w *Workspace) {
			must(t, os.Rename(w.Home(), w.Home()+"-moved"))
			t.Cleanup(func() { must(t, os.RemoveAll(w.Home()+"-moved")) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, Options{Root: root})
			leave(t, w)
			must(t, w.Close(t.Context(), false))
			if isThere(w.Home()) {
				t.Error("it is still there")
			}
			must(t, w.Close(t.Context(), false)) // a second call is fine
			same(t, "the shared tree", contents(t, root), before)
		})
	}
}

func TestCloseWhileSomethingWrites(t *testing.T) {
	w := open(t, Options{Root: base(t)})
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default: // errors are expected
				os.MkdirAll(filepath.Join(tree(t, w), fmt.Sprint(i%10)), 0o700)
				os.WriteFile(filepath.Join(tree(t, w), fmt.Sprint(i%10), "x"), nil, 0o600)
			}
		}
	})
	err := w.Close(t.Context(), false)
	close(stop)
	writer.Wait()
	if err != nil && !strings.Contains(err.Error(), "still writes") {
		t.Error(err)
	}
	left, err := Abandoned(t.Context(), filepath.Dir(w.Home()))
	must(t, err)
	if isThere(w.Home()) != (len(left) == 1) {
		t.Errorf("left is %v", left)
	}
	for _, l := range left {
		again, err := Adopt(l.Home, nil)
		must(t, err)
		must(t, again.Close(t.Context(), false))
	}
	if isThere(w.Home()) {
		t.Error("it is still there")
	}
}

func TestCloseCanBeStopped(t *testing.T) {
	w := open(t, Options{Root: base(t)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Close(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	again, err := Adopt(w.Home(), nil)
	must(t, err)
	must(t, again.Close(t.Context(), false))
}

// A workspace of a dead process is found, with its content.
//
// shows: GP-5
func TestAbandoned(t *testing.T) {
	root, dir := newRepository(t), t.TempDir()
	none := func() {
		t.Helper()
		if left, err := Abandoned(t.Context(), dir); err != nil || len(left) > 0 {
			t.Errorf("%v, %v", left, err)
		}
	}
	none()
	plant(t, dir, map[string]string{"a file": "", "other/dir": "x"})
	live := open(t, Options{Root: root, Dir: dir})
	none()
	if w, err := Adopt(live.Home(), nil); err == nil {
		t.Errorf("two use %s", w.Home())
	}
	home := startAndKill(t, "work", root, dir)
	half := startAndKill(t, "half", root, dir)
	kept := open(t, Options{Root: root, Dir: dir})
	write(t, tree(t, kept), "kept.rb", "kept")
	must(t, kept.Close(t.Context(), true))
	left, err := Abandoned(t.Context(), dir)
	must(t, err)
	if len(left) != 3 {
		t.Fatalf("left are %v", left)
	}
	for _, l := range left {
		w, err := Adopt(l.Home, nil)
		must(t, err)
		found, err := w.Changes(t.Context())
		switch l.Home {
		case home, kept.Home():
			if l.Fault != nil || l.Root != root || l.Made.IsZero() || err != nil || len(found) != 1 {
				t.Errorf("%v: changes %v, %v", l, found, err)
			}
		case half:
			var lost *LostError
			if l.Fault == nil || !errors.As(err, &lost) {
				t.Errorf("%v: changes %v, %v", l, found, err)
			}
		}
		if l.Home == home {
			if f, err := w.Open("mine.rb"); err != nil {
				t.Error(err)
			} else {
				must(t, f.Close())
			}
		}
		must(t, w.Close(t.Context(), false))
	}
	none()
	if left, err := Abandoned(t.Context(), filepath.Join(dir, "none")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// If a process dies while it makes a workspace, its directory is found at once. A process that
// searches for such directories removes none of those that other processes are making.
//
// shows: GP-5
func TestAbandonedWhileOthersMakeSome(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	write(t, root, "a.rb", "a")
	must(t, os.Mkdir(filepath.Join(dir, "0123456789ab"), 0o700))
	var makers, clearer sync.WaitGroup
	var made atomic.Bool
	cleared := 0
	clearer.Go(func() {
		for !made.Load() || cleared == 0 {
			left, err := Abandoned(t.Context(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			for _, l := range left {
				w, err := Adopt(l.Home, nil)
				if err != nil {
					continue // its maker locked it first
				}
				if err := w.Close(t.Context(), false); err != nil {
					t.Error(err)
				}
				cleared++
			}
		}
	})
	for range 4 {
		makers.Go(func() {
			for range 50 * torture() {
				w, err := Make(t.Context(), Options{Root: root, Dir: dir})
				if err != nil {
					t.Error(err)
					return
				}
				if text, err := os.ReadFile(filepath.Join(tree(t, w), "a.rb")); err != nil || string(text) != "a" {
					t.Errorf("an agent was in the copy: %q, %v", text, err)
				}
				if err := w.Close(t.Context(), false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	makers.Wait()
	made.Store(true)
	clearer.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// A damaged manifest does not cause the loss of other files.
func TestDamagedManifests(t *testing.T) {
	onlyCopies(t, "a manifest on layers is shorter, and written by the same code")
	root, dir := base(t), t.TempDir()
	for name, damage := range map[string]func(file string) error{
		"removed":   os.Remove,
		"truncated": func(file string) error { return os.Truncate(file, 100) },
		"cut":       func(file string) error { return os.Truncate(file, 700) },
		"foreign":   func(file string) error { return os.WriteFile(file, []byte("something else"), 0o600) },
		"a pipe":    func(file string) error { return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)) },
		"a link":    func(file string) error { return errors.Join(os.Remove(file), os.Symlink("/dev/zero", file)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, Options{Root: root, Dir: dir})
			must(t, w.Close(t.Context(), true))
			must(t, damage(filepath.Join(w.Home(), manifestName)))
			left, err := Abandoned(t.Context(), dir)
			if err != nil || len(left) != 1 {
				t.Errorf("%v, %v", left, err)
			}
			again, err := Adopt(w.Home(), nil)
			must(t, err)
			var lost *LostError
			if _, err := again.Changes(t.Context()); !errors.As(err, &lost) {
				t.Error(err)
			}
			must(t, again.Close(t.Context(), false))
		})
	}
}

// Saving the manifest does not write through a link of an agent.
func TestManifestIsNotWrittenThrough(t *testing.T) {
	root := base(t)
	w := open(t, Options{Root: root})
	before := contents(t, root)
	for _, name := range []string{".lockkeeper-tmp-manifest", tempName} {
		must(t, os.Symlink(filepath.Join(root, "a.rb"), filepath.Join(w.Home(), name)))
	}
	write(t, tree(t, w), "a.rb", "mine")
	takeAll(t, w)
	same(t, "the shared tree", contents(t, root), before)
	wantChanges(t, w)
}

// If a process dies before it has locked a new workspace, its draft is removed later. Until then
// it may belong to a process that is making a workspace.
func TestDraftsOfDeadMakers(t *testing.T) {
	dir := t.TempDir()
	dead, live := filepath.Join(dir, draftPrefix+"0123456789ab.0"), filepath.Join(dir, draftPrefix+"ba9876543210.0")
	must(t, errors.Join(os.Mkdir(dead, 0o700), os.Mkdir(live, 0o700)))
	fd, err := openLocked(live)
	must(t, err)
	defer closeFD(fd)
	if left, err := Abandoned(t.Context(), dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if isThere(dead) || !isThere(live) {
		t.Errorf("the draft of a dead maker: %v, of a live one: %v", isThere(dead), isThere(live))
	}
}
