package gate_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/gate"
	"lockkeeper/store"
)

// abandon makes a commit crash at its nth rename and returns the decided landing that it
// leaves.
func (w *world) abandon(nth int, changes ...gate.Change) *lockkeeper.Landing {
	w.t.Helper()
	disk := &durabletest.FaultyDisk{}
	renames := 0
	disk.At = func(k int, op durabletest.Op) {
		if op == durabletest.Move || op == durabletest.Exchange {
			if renames++; renames == nth {
				disk.CrashAt(k + 1)
			}
		}
	}
	w.open(gate.Options{Disk: disk})
	paths := []string{}
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	g := w.hold("otter", paths...)
	if _, err := w.gate.Commit(w.t.Context(), &g.Grant, changes); err == nil {
		w.t.Fatal("the commit did not crash")
	}
	var open []*lockkeeper.Landing
	must(w.t, w.store.View(w.t.Context(), func(r store.Reader) (err error) {
		open, err = r.Landings(store.LandingQuery{Open: true})
		return err
	}))
	if len(open) != 1 {
		w.t.Fatalf("%d landings are open", len(open))
	}
	return open[0]
}

// If two recoveries of one landing interleave at any point, the final state in the store
// matches the tree.
//
// shows: GP-4 GP-31
func TestTwoRecoveries(t *testing.T) {
	inMemory(t)
	kinds := map[string][]gate.Change{
		"replace": {gate.Put("test/a", []byte("new"))},
		"create":  {gate.Put("test/n/n", []byte("new"))},
		"delete":  {gate.Delete("test/b")},
		"several": {gate.Put("test/a", []byte("new")), gate.Delete("test/b"), gate.Put("test/n/n", []byte("new")), chmod("test/c", 0o755)},
	}
	for kind, changes := range kinds {
		for nth := 1; nth <= len(changes)+1; nth += 2 {
			for _, edited := range []bool{false, true} {
				for k, more := 0, true; more; k++ {
					if k%5 != (nth+len(kind))%5 && testing.Short() {
						continue
					}
					t.Run(fmt.Sprintf("%s crashed at %d edited %t overlap at %d", kind, nth, edited, k), func(t *testing.T) {
						more = overlap(t, changes, nth, edited, k)
					})
				}
			}
		}
	}
}

// overlap runs one whole recovery before operation k of another, and reports whether the other
// reached that operation.
func overlap(t *testing.T, changes []gate.Change, nth int, edited bool, k int) (reached bool) {
	w := newWorld(t, map[string]string{"test/a": "old", "test/b": "old", "test/c": "old"}, gate.Options{})
	before := scan(t, w.dir, ".lockkeeper")
	l := w.abandon(nth, changes...)
	theirs := map[string]string{}
	if last := l.Changes[len(l.Changes)-1]; edited {
		must(t, os.MkdirAll(filepath.Dir(w.in(last.Path)), 0o755), os.WriteFile(w.in(last.Path), []byte("theirs"), 0o644))
		now := scan(t, w.dir, ".lockkeeper")
		theirs[last.Path], theirs[filepath.Dir(last.Path)] = now[last.Path], now[filepath.Dir(last.Path)]
	}
	w.open(gate.Options{})
	other := w.gate
	disk := &durabletest.FaultyDisk{}
	armed := false
	var mu sync.Mutex
	disk.At = func(now int, _ durabletest.Op) {
		mu.Lock()
		defer mu.Unlock()
		if armed && now == k {
			reached, armed = true, false
			if err := other.RecoverLandings(t.Context(), l.GrantID); err != nil {
				t.Errorf("the recovery in between: %v", err)
			}
		}
	}
	w.open(gate.Options{Disk: disk})
	k += len(disk.Trace())
	armed = true
	if err := w.gate.RecoverLandings(t.Context(), l.GrantID); err != nil {
		t.Errorf("the overlapped recovery: %v", err)
	}
	w.noStages()
	got, err := w.gate.Landing(t.Context(), l.Seq)
	must(t, err)
	want := maps.Clone(before)
	switch got.State {
	case lockkeeper.Undone:
		if !edited {
			t.Error("rolled back without a conflict")
		}
	case lockkeeper.Committed:
		for _, c := range l.Changes {
			switch {
			case !c.New.Exists():
				delete(want, c.Path)
			case c.Path == "test/c":
				want[c.Path] = "-rwxr-xr-x old"
			default:
				want[c.Path] = "-rw-r--r-- new"
			}
		}
		if _, ok := want["test/n/n"]; ok {
			want["test/n"] = "drwxr-xr-x "
		}
	default:
		t.Errorf("still %s", got.State)
	}
	maps.Copy(want, theirs)
	if d := differences(want, scan(t, w.dir, ".lockkeeper")); len(d) > 0 {
		t.Errorf("%s, but %v", got.State, d)
	}
	return reached
}
