package pipeline_test

import (
	"crypto/rand"
	"encoding/hex"
	"testing"

	"lockkeeper/internal/flow"
)

// newSpace names a space that nobody else has.
func newSpace(testing.TB) string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// Four controllers go from analysis to verified changes, with a policy in the place of
// people.
//
// shows: PL-1 PL-2 PL-3 PL-4 PL-7 PL-8 PL-9 PL-10 PL-11 PL-12 PL-16 PL-17 PL-18 PL-19 PL-20 PL-26 PL-27 PL-28 PL-29 PL-31 PL-32 PL-44 PL-83 SW-1 SW-11 SW-12 SW-75 SW-76 SW-65
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
		})
	}
}

// Nine screens are analysed side by side, and merged by controller.
//
// shows: SW-3 SW-5 SW-6 SW-7 SW-8 SW-9 SW-10 SW-20 SW-21 SW-22 SW-23 SW-24 SW-26 SW-28 SW-29 SW-30 CF-19 CF-20 CF-22 CF-26 CF-30 CF-31 SW-61
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
		})
	}
}

// Ten jobs, one tree, no collisions.
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
