package author_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/compat/bookfile"
	"lockkeeper/store"
)

// shows: LM-15 LM-20 CF-35 CF-39
func TestForeignClaimsCount(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	theirs := entry("Chapter_03", "Desktop-9", 3*time.Minute)
	s.foreign(theirs)
	got := s.blocked(one, "Chapter_03")[0]
	if got.Instance != "Desktop-9" || !got.Foreign || got.Minutes != 3 || got.State != author.Working || got.Stale {
		t.Errorf("conflict: %+v", got)
	}
	s.claim(one, "Chapter_04")
	if !slices.Contains(s.file(), theirs) {
		t.Errorf("the foreign entry was changed: %v", s.file())
	}
	renewed := entry("Chapter_03", "Desktop-9", 0)
	s.foreign(renewed)
	if got := s.blocked(one, "Chapter_03")[0]; got.Minutes != 0 || got.Grant != s.listed()["Chapter_03"].Grant {
		t.Errorf("after renewal: %+v", got)
	}
	s.foreign(slices.DeleteFunc(s.file(), func(e bookfile.Entry) bool { return e.Instance == "Desktop-9" })...)
	s.claim(one, "Chapter_03")
}

// A foreign tool that clears all locks, or overrides a Lockkeeper claim, releases no
// Lockkeeper claim.
//
// shows: LM-23 LM-42 CF-39
func TestForeignToolsFreeNothingOfOurs(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	two, _ := s.instance("CLI-2")
	s.claim(one, "Chapter_03")
	mine := s.file()[0]
	s.foreign()
	if s.listed()["Chapter_03"].Instance != "CLI-1" || !s.hasEntry("Chapter_03", "CLI-1") {
		t.Errorf("after a foreign clear the file has %v", s.file())
	}
	s.foreign(entry("Chapter_03", "CLI-66", 0))
	_, notes, err := s.Claims(t.Context())
	must(t, err)
	if len(notes) != 1 || notes[0].Kind != author.Collision || notes[0].Entry.Instance != "CLI-66" || notes[0].Blockers[0].Instance != "CLI-1" {
		t.Errorf("notes about the override: %+v", notes)
	}
	if s.blocked(two, "Chapter_03")[0].Instance != "CLI-1" || !s.hasEntry("Chapter_03", "CLI-1") {
		t.Error("the holder has changed")
	}
	s.listed()
	if n := s.events(lockkeeper.EventDenied, "CLI-66"); n != 1 {
		t.Errorf("the collision was recorded %d times", n)
	}
	// When the holder releases it, the foreign claim counts.
	_, err = s.Unclaim(t.Context(), one, nil)
	must(t, err)
	if got := s.blocked(two, "Chapter_03")[0]; got.Instance != "CLI-66" {
		t.Errorf("conflict: %+v", got)
	}
	// An ended Lockkeeper entry that a foreign tool writes back is not a new claim.
	s.foreign(mine)
	s.claim(two, "Chapter_03")
	if s.hasEntry("Chapter_03", "CLI-1") {
		t.Errorf("the file has %v", s.file())
	}
}

func (s *study) events(kind lockkeeper.EventKind, actor string) (n int) {
	s.t.Helper()
	events, err := s.app.Locks.Events(s.t.Context(), store.EventQuery{Limit: 1000})
	must(s.t, err)
	for _, ev := range events {
		if ev.Kind == kind && ev.Actor.Name == actor {
			n++
		}
	}
	return n
}

// shows: LM-41
func TestDuplicatesNewestFirst(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	s.foreign(entry("Chapter_03", "CLI-8", 2*time.Minute), entry("Chapter_03", "CLI-9", time.Minute))
	_, notes, err := s.Claims(t.Context())
	must(t, err)
	if len(notes) != 1 || notes[0].Kind != author.Duplicate || notes[0].Entry.Instance != "CLI-8" {
		t.Errorf("notes: %+v", notes)
	}
	if got := s.blocked(one, "Chapter_03"); got[0].Instance != "CLI-9" {
		t.Errorf("conflicts: %+v", got)
	}
}

// Whatever happens to the file, no current claim is released.
//
// shows: LM-39 LM-41 CF-38
func TestDamagedFileFreesNothing(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	two, _ := s.instance("CLI-2")
	s.claim(one, "Chapter_01")
	s.foreign(append(s.file(), entry("Chapter_02", "CLI-9", time.Minute))...)
	s.listed()
	whole, err := os.ReadFile(s.path())
	must(t, err)
	still := func(what string) {
		t.Helper()
		for name, instance := range map[string]string{"Chapter_01": "CLI-1", "Chapter_02": "CLI-9"} {
			if got := s.blocked(two, name); got[0].Instance != instance {
				t.Errorf("%s: %s is held by %s", what, name, got[0].Instance)
			}
		}
	}
	old := time.Now().Add(-time.Minute)
	step := 1
	if testing.Short() {
		step = 7
	}
	for n := 0; n < len(whole)-2; n += step {
		must(t, os.WriteFile(s.path(), whole[:n], 0o644), os.Chtimes(s.path(), old, old))
		_, notes, err := s.Claims(t.Context())
		must(t, err)
		if len(notes) == 0 || notes[0].Kind != author.Corrupted {
			t.Fatalf("%d bytes: notes %+v", n, notes)
		}
		if !s.hasEntry("Chapter_01", "CLI-1") || !s.hasEntry("Chapter_02", "CLI-9") {
			t.Fatalf("%d bytes: the file has %v", n, s.file())
		}
	}
	still("cut off")
	must(t, os.WriteFile(s.path(), []byte("\x00\xff noise"), 0o644), os.Chtimes(s.path(), old, old))
	still("noise")
	must(t, os.Remove(s.path()))
	still("removed")
	must(t, os.RemoveAll(filepath.Dir(s.path())))
	still("removed with its directory")
	must(t, os.Remove(s.path()), os.Mkdir(s.path(), 0o755))
	if _, err := s.Claim(t.Context(), s.want(two, "Chapter_05")); lockkeeper.CodeOf(err) != lockkeeper.CodeStore {
		t.Errorf("claim with a directory at the file's path: %v", err)
	}
	list, _, err := s.Claims(t.Context())
	if err == nil || len(list) != 2 {
		t.Errorf("claims with a directory at the file's path: %v, %v", list, err)
	}
	must(t, os.Remove(s.path()))
	still("a directory")
}

// shows: LM-42 LM-58
func TestCollisionIsToldWithinASecond(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	a := s.claim(one, "StyleSystem")
	told := make(chan author.Note, 10)
	w := s.Watch(t.Context(), func(n author.Note) { told <- n }, func(err error) { t.Error(err) })
	defer w.Close()
	const tries = 20
	for soon, i := 0, 0; soon < 3; i++ { // a busy machine may delay some
		if i == tries {
			t.Fatalf("%d of %d collisions were reported within a second", soon, tries)
		}
		began := time.Now()
		s.foreign(entry("StyleSystem", fmt.Sprintf("CLI-6%d", i), 0))
		n := <-told
		if n.Kind != author.Collision || n.Entry.Instance != fmt.Sprintf("CLI-6%d", i) {
			t.Errorf("got note %+v", n)
		}
		if time.Since(began) <= time.Second {
			soon++
		}
	}
	if g, err := s.app.Gate(); err != nil {
		t.Error(err)
	} else if err := g.Check(t.Context(), &a.Grant.Grant, "Manuscript/Style/Style_Guide.md")[0]; err != nil {
		t.Errorf("the gate refuses the holder: %v", err)
	}
	for !s.hasEntryNow("StyleSystem", "CLI-1") { // restored by the watch alone
		time.Sleep(10 * time.Millisecond)
	}
	w.Close()
	select {
	case n := <-told:
		t.Errorf("reported again: %+v", n)
	default:
	}
}

// hasEntryNow does the same as hasEntry while other tools write the file in place.
func (s *study) hasEntryNow(resource, instance string) bool {
	text, err := os.ReadFile(s.path())
	must(s.t, err)
	entries, _ := bookfile.Decode(text)
	return slices.ContainsFunc(entries, func(e bookfile.Entry) bool { return e.Resource == resource && e.Instance == instance })
}

// A foreign claim that a person releases elsewhere, for example on the dashboard, does not
// return from the file.
//
// shows: LM-43
func TestTakenAwayElsewhere(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	s.foreign(entry("Chapter_03", "CLI-9", time.Minute))
	grant := s.listed()["Chapter_03"].Grant
	must(t, s.app.Locks.ForceRelease(t.Context(), grant, ada, "gone home"))
	if list := s.listed(); len(list) != 0 || len(s.file()) != 0 {
		t.Errorf("claims %v; the file has %v", list, s.file())
	}
	s.foreign(bookfile.Entry{Resource: "Chapter_03", Instance: "CLI-9", Timestamp: time.Now().Add(time.Second).UTC().Format(time.RFC3339)})
	if got := s.blocked(one, "Chapter_03"); got[0].Instance != "CLI-9" {
		t.Errorf("it cannot claim again: %+v", got)
	}
}
