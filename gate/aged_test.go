package gate_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/gate"
	"lockkeeper/store"
)

// aged sets the modification time of a file to ten days ago.
func aged(t *testing.T, path string) {
	t.Helper()
	long := time.Now().Add(-240 * time.Hour)
	must(t, os.Chtimes(path, long, long))
}

// awaitTick waits until the coarse clock of the file system has passed now.
func awaitTick(t *testing.T, dir string) {
	t.Helper()
	now, probe := time.Now(), dir+"/.probe"
	for seen := now; !seen.After(now); {
		must(t, os.WriteFile(probe, nil, 0o600))
		info, err := os.Stat(probe)
		must(t, err, os.Remove(probe))
		seen = info.ModTime()
	}
}

// An edit is not overwritten even if the file has an old modification time.
func TestEditsWithOldTimes(t *testing.T) {
	edits := map[string]func(t *testing.T, path string){
		"moved there": func(t *testing.T, path string) {
			draft := path + ".draft"
			must(t, os.WriteFile(draft, []byte("theirs"), 0o644))
			aged(t, draft)
			must(t, os.Rename(draft, path))
		},
		"copied with its times": func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte("theirs"), 0o644))
			aged(t, path)
		},
		"unpacked": func(t *testing.T, path string) {
			must(t, os.Remove(path), os.WriteFile(path, []byte("theirs"), 0o644))
			aged(t, path)
		},
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"test/a": "old"}, gate.Options{})
			g := w.hold("otter", "test/a")
			awaitTick(t, w.dir)
			edit(t, w.in("test/a"))
			_, err := w.gate.Write(t.Context(), &g.Grant, "test/a", []byte("mine"))
			if lockkeeper.CodeOf(err) != lockkeeper.CodeViolation {
				t.Errorf("error %v", err)
			}
			w.want(map[string]string{"test/a": "theirs"})
			w.nothingLost([]gate.Change{gate.Put("test/a", []byte("mine"))})
		})
	}
}

// A slowView is a store whose View reads the clock and then waits before it calls the reader.
type slowView struct {
	store.Store
	late time.Duration
}

func (s slowView) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error {
		time.Sleep(s.late)
		return fn(r)
	})
}

// An edit right after the grant is found even if the store takes longer to answer than the
// editor took to write.
func TestEditsAndASlowStore(t *testing.T) {
	w := newWorld(t, map[string]string{"test/a": "old"}, gate.Options{})
	g := w.hold("otter", "test/a")
	awaitTick(t, w.dir)
	must(t, os.WriteFile(w.in("test/a"), []byte("theirs"), 0o644))
	w.store = slowView{w.store, 2 * time.Since(g.AcquiredAt)}
	w.open(gate.Options{})
	_, err := w.gate.Write(t.Context(), &g.Grant, "test/a", []byte("mine"))
	if lockkeeper.CodeOf(err) != lockkeeper.CodeViolation {
		t.Errorf("error %v", err)
	}
	w.want(map[string]string{"test/a": "theirs"})
}

// If the gate knows the content, a changed modification time alone does not cause a refusal.
func TestTimesWithoutEdits(t *testing.T) {
	w := newWorld(t, nil, gate.Options{})
	first := w.hold("otter", "test/a")
	w.commit(first, gate.Put("test/a", []byte("one")))
	w.releases(first)
	g := w.hold("heron", "test/a")
	awaitTick(t, w.dir)
	aged(t, w.in("test/a"))
	must(t, os.Link(w.in("test/a"), w.in("twin")), os.Remove(w.in("twin")))
	w.commit(g, gate.Put("test/a", []byte("two")))
	w.want(map[string]string{"test/a": "two"})
}

// A landing that was rolled back can be retried under the same grant, although the rollback
// renamed the files.
func TestRetryAfterARollback(t *testing.T) {
	disk := &durabletest.FaultyDisk{}
	w := newWorld(t, map[string]string{"test/a": "old", "test/b": "old"}, gate.Options{Disk: disk})
	g := w.hold("otter", "test/a", "test/b")
	awaitTick(t, w.dir)
	changes := []gate.Change{gate.Put("test/a", []byte("new")), gate.Put("test/b", []byte("new"))}
	exchanges := 0
	disk.At = func(_ int, op durabletest.Op) {
		if op == durabletest.Exchange {
			if exchanges++; exchanges == 1 {
				disk.FailNext(durabletest.Exchange, 1, syscall.EIO) // fails the second exchange
			}
		}
	}
	if _, err := w.gate.Commit(t.Context(), &g.Grant, changes); !errors.Is(err, syscall.EIO) {
		t.Fatalf("error %v", err)
	}
	w.want(map[string]string{"test/a": "old", "test/b": "old"})
	w.commit(g, changes...)
	w.want(map[string]string{"test/a": "new", "test/b": "new"})
}
