package gate_test

import (
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/durable/durabletest"
	"lockkeeper/gate"
	"lockkeeper/store/storetest"
)

// A halt blocks a caller at one disk operation until it may continue.
type halt struct {
	disk    *durabletest.FaultyDisk
	at      int
	reached chan struct{}
	goOn    chan struct{}
}

func newHalt() *halt {
	h := &halt{disk: &durabletest.FaultyDisk{}, at: -1, reached: make(chan struct{}, 1), goOn: make(chan struct{})}
	h.disk.At = func(k int, _ durabletest.Op) {
		if k == h.at {
			h.at = -1
			h.reached <- struct{}{}
			<-h.goOn
		}
	}
	return h
}

// until starts do and waits until it reaches its k-th operation or ends. The returned function
// resumes do and waits for its end.
func (h *halt) until(k int, do func()) (reached bool, finish func()) {
	h.at = k + len(h.disk.Trace())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do()
	}()
	select {
	case <-h.reached:
		return true, func() { h.goOn <- struct{}{}; <-ended }
	case <-ended:
		return false, func() {}
	}
}

// A recovery that is delayed at any operation of one landing does not touch the next landing,
// whose writer reuses the same stage directory.
//
// shows: SW-38 GP-4 GP-31
func TestLateForTheLandingBefore(t *testing.T) {
	inMemory(t)
	stride := 3
	if storetest.Torture() > 1 {
		stride = 1
	}
	for first, more := 0, true; more; first++ {
		for second, reached := first%stride, true; reached; second += stride {
			more, reached = lateForTheOneBefore(t, first, second)
		}
	}
}

// lateForTheOneBefore stops a writer before one operation, and a recovery of its landing before
// another. It then resumes the writer and, in the middle of the writer's next commit, the
// recovery.
func lateForTheOneBefore(t *testing.T, first, second int) (stopped, reached bool) {
	w := newWorld(t, map[string]string{"test/a": "old", "test/b": "old"}, gate.Options{})
	writer, recovery := newHalt(), newHalt()
	w.open(gate.Options{Disk: recovery.disk})
	other := w.gate
	w.open(gate.Options{Disk: writer.disk})
	otter, heron := w.hold("otter", "test/a"), w.hold("heron", "test/b")

	var err error
	stopped, finishFirst := writer.until(first, func() { _, err = w.gate.Write(t.Context(), &otter.Grant, "test/a", []byte("new")) })
	reached, finishRecovery := recovery.until(second, func() {
		if err := other.RecoverLandings(t.Context(), otter.ID); err != nil {
			t.Errorf("recovery: %v", err)
		}
	})
	finishFirst()
	var nextErr error
	_, finishNext := writer.until(14, func() { _, nextErr = w.gate.Write(t.Context(), &heron.Grant, "test/b", []byte("next")) })
	finishRecovery()
	finishNext()
	if nextErr != nil {
		t.Errorf("writer at %d, recovery at %d: the next commit: %v", first, second, nextErr)
	}
	_, releaseErr := w.locks.Release(t.Context(), otter.ID, otter.Token)
	must(t, releaseErr)
	w.releases(heron)
	content, readErr := os.ReadFile(filepath.Join(w.dir, "test/a"))
	must(t, readErr)
	if err == nil && string(content) != "new" { // the commit may have been refused because it was taken over
		t.Errorf("writer at %d, recovery at %d: it landed, and the file holds %q", first, second, content)
	}
	w.want(map[string]string{"test/a": string(content), "test/b": "next"})
	w.noStages()
	return stopped, reached
}

// A closed gate leaves no stage behind. A killed gate leaves an empty one, which the next
// recovery removes.
func TestSpareStages(t *testing.T) {
	w := newWorld(t, map[string]string{"test/a": "old"}, gate.Options{})
	killed := w.gate
	g := w.hold("otter", "test/a")
	stages := func() []os.DirEntry {
		list, err := os.ReadDir(filepath.Join(w.dir, ".lockkeeper/stage"))
		must(t, err)
		return list
	}
	for _, content := range []string{"one", "two", "three"} {
		if _, err := killed.Write(t.Context(), &g.Grant, "test/a", []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if list := stages(); len(list) != 1 {
		t.Fatalf("%d stages, not one that is used again", len(list))
	}
	if left, err := gate.MayNeedRecovery(w.dir, 0); left || err != nil {
		t.Errorf("a spare stage is taken for something left to do: %v", err)
	}
	if r, err := killed.Recover(t.Context()); err != nil || r.Working != 0 {
		t.Errorf("recovery: %+v, %v", r, err)
	}
	must(t, killed.Close(t.Context()))
	if list := stages(); len(list) != 0 {
		t.Errorf("%d stages after Close", len(list))
	}
	must(t, os.MkdirAll(filepath.Join(w.dir, ".lockkeeper/stage/spare.0123456789abcdef"), 0o700))
	w.open(gate.Options{})
	if r, err := w.gate.Recover(t.Context()); err != nil || r.Cleared != 0 {
		t.Errorf("recovery: %+v, %v", r, err)
	}
	if list := stages(); len(list) != 0 {
		t.Errorf("%d stages after a recovery", len(list))
	}
}
