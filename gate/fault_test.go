package gate_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"lockkeeper/durable/durabletest"
	"lockkeeper/gate"
)

// A wary disk reports an error if a file is synced again after a failed sync. The kernel has
// dropped the data by then and reports success.
type wary struct {
	durabletest.FaultyDisk
	t      *testing.T
	mu     sync.Mutex
	failed map[*os.File]bool
}

// Sync implements durable.Disk.
func (d *wary) Sync(f *os.File) error {
	d.mu.Lock()
	if d.failed[f] {
		d.t.Errorf("a failed sync of %s was tried again", f.Name())
	}
	d.mu.Unlock()
	err := d.FaultyDisk.Sync(f)
	if err != nil {
		d.mu.Lock()
		d.failed[f] = true
		d.mu.Unlock()
	}
	return err
}

// broken creates a world for a scene. The kth disk operation from now on fails and, if stays is
// set, all later ones.
func broken(t *testing.T, s scene, k int, fault error, stays bool) (w *world, failed func() bool) {
	t.Helper()
	disk := &wary{t: t, failed: map[*os.File]bool{}}
	w = newWorld(t, nil, gate.Options{Disk: disk})
	plantScan(t, w.dir, s.old)
	from := len(disk.Trace()) + k
	disk.FailAt(from, fault)
	if stays {
		for n := range 5_000 {
			disk.FailAt(from+n, fault)
		}
	}
	return w, func() bool { return len(disk.Trace()) > from }
}

// faults calls a test for every disk operation of a commit. For a scene in every, an ordinary
// run tests only each nth operation.
func faults(t *testing.T, every map[string]int, test func(t *testing.T, s scene, k int, fault syscall.Errno) (failed bool)) {
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k, failed := 0, true; failed; k++ {
				for n, fault := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
					if sampled(k+n, every[name]) {
						t.Run(fmt.Sprintf("%d %s", k, fault), func(t *testing.T) { failed = test(t, s, k, fault) })
					}
				}
			}
		})
	}
}

// If one disk operation fails once, the tree is wholly old, or wholly new if the failure came
// too late. The error is clear and the grant can be released.
//
// shows: SW-38 GP-4 GP-31 LE-26
func TestFaultAtEveryOperation(t *testing.T) {
	faults(t, map[string]int{"deep": 3, "twenty": 19}, func(t *testing.T, s scene, k int, fault syscall.Errno) bool {
		w, failed := broken(t, s, k, fault, false)
		g := w.hold("otter", s.paths()...)
		_, err := w.gate.Commit(t.Context(), &g.Grant, s.changes)
		if !failed() { // the commit has fewer operations
			must(t, err)
			return false
		}
		tree := scan(t, w.dir, ".lockkeeper")
		switch {
		case err == nil:
			if !holds(tree, s.new) {
				t.Errorf("no error, but %v", differences(s.new, tree))
			}
		case !errors.Is(err, fault):
			t.Errorf("error %v does not say what was wrong", err)
		case holds(tree, s.old):
		case !holds(tree, s.new):
			t.Errorf("neither old nor new after %v: %v", err, differences(s.old, tree))
		case !strings.Contains(err.Error(), "may not survive a crash"):
			t.Errorf("the changes are in place, and the error is %v", err)
		}
		w.releases(g)
		agreed(w, g.ID, s)
		if _, err := w.gate.Recover(t.Context()); err != nil {
			t.Errorf("recovery: %v", err)
		}
		w.noStages()
		w.nothingLost(s.changes)
		return true
	})
}

// If the disk stays broken, recovery completes or rolls back the landing once the disk works
// again.
//
// shows: SW-38 GP-4 GP-31
func TestDiskThatStaysBroken(t *testing.T) {
	faults(t, map[string]int{"deep": 5, "rename": 3, "two": 3, "mode": 3, "replace": 2, "twenty": 29}, func(t *testing.T, s scene, k int, fault syscall.Errno) bool {
		w, failed := broken(t, s, k, fault, true)
		g := w.hold("otter", s.paths()...)
		_, err := w.gate.Commit(t.Context(), &g.Grant, s.changes)
		if !failed() {
			must(t, err)
			return false
		}
		tree := scan(t, w.dir, ".lockkeeper")
		switch {
		case err == nil && !holds(tree, s.new):
			t.Errorf("no error, but %v", differences(s.new, tree))
		case err != nil && !errors.Is(err, fault):
			t.Errorf("error %v does not say what was wrong", err)
		}
		w.open(gate.Options{})
		if _, err := w.gate.Recover(t.Context()); err != nil {
			t.Errorf("recovery: %v", err)
		}
		w.noStages()
		w.nothingLost(s.changes)
		agreed(w, g.ID, s)
		if released, err := w.locks.Release(t.Context(), g.ID, g.Token); !released || err != nil {
			t.Errorf("release: %t, %v", released, err)
		}
		return true
	})
}
