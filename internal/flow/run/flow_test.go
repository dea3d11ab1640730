package run_test

import (
	"crypto/rand"
	"encoding/hex"
	"testing"

	"lockkeeper/internal/flow"
)

// newSpace returns a unique name for a space.
func newSpace(testing.TB) string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// Four controllers go from analysis to verified changes. A policy decides in place of people.
//
// shows: PL-27 PL-38 SW-1 SW-65 CF-26
func TestControllers(t *testing.T) {
	for store := range stores {
		t.Run(store, func(t *testing.T) {
			s := newScene(t, store, "controllers")
			before := s.files()
			out := s.run("impact>=medium,topics=reject")
			if out.Failed != 0 || out.Complete != 4 {
				t.Fatalf("%d complete, %d failed: %+v", out.Complete, out.Failed, out.State.Units)
			}
			s.green()
			after := s.files()
			changed := 0
			for path, text := range after {
				if before[path] != text {
					changed++
				}
			}
			if changed < 10 {
				t.Errorf("only %d files changed", changed)
			}
			s.covered(before, after)
			if locked := s.readLocked(); len(locked) != 0 {
				t.Errorf("phases that only read locked %v, and run.lock_reads is off for this flow", locked)
			}
		})
	}
}

// Nine screens are analyzed concurrently and merged by controller.
//
// shows: SW-7 SW-9 SW-21 SW-26 SW-30 CF-26
func TestScreens(t *testing.T) {
	for store := range stores {
		t.Run(store, func(t *testing.T) {
			s := newScene(t, store, "screens")
			before := s.files()
			out := s.run("all")
			if out.Failed != 0 || out.Complete != 4 {
				t.Fatalf("%d complete, %d failed: %+v", out.Complete, out.Failed, out.State.Units)
			}
			s.green()
			s.covered(before, s.files())
			locked := s.readLocked()
			for _, path := range []string{"app/controllers/blog/posts_controller.rb", "app/views/blog/posts", "app/models/user.rb"} {
				if !locked[path] {
					t.Errorf("no screen locked %s for reading, only %v", path, locked)
				}
			}
		})
	}
}

// Ten tasks change one tree without conflicts.
//
// shows: SW-1 SW-11 PL-9
func TestTasks(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	before := s.files()
	out := s.run("all")
	for _, u := range out.State.Units {
		for _, b := range u.Batches {
			if b.Status != flow.Complete {
				t.Errorf("%s: %s %s", b.ID, b.Status, b.Error)
			}
		}
	}
	s.green()
	s.covered(before, s.files())
}
