package gate_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/gate"
	"lockkeeper/lock"
	"lockkeeper/store/memstore"
	"lockkeeper/store/storetest"
)

// undoRefused checks that a landing cannot be undone, that the error says why, and that nothing
// changes.
func (w *world) undoRefused(g *lock.Grant, seq uint64, words ...string) {
	w.t.Helper()
	w.harmless("undo", func() error {
		asked := w.gate.CanUndo(w.t.Context(), seq)
		_, err := w.gate.Undo(w.t.Context(), &g.Grant, seq)
		if lockkeeper.CodeOf(err) == lockkeeper.CodeRefused && (asked == nil || asked.Error() != err.Error()) { // refused for another reason than a missing grant
			w.t.Errorf("asked whether landing %d can be undone: %v; tried: %v", seq, asked, err)
		}
		return err
	}, words...)
}

func (w *world) undo(g *lock.Grant, seq uint64) *lockkeeper.Landing {
	w.t.Helper()
	must(w.t, w.gate.CanUndo(w.t.Context(), seq))
	l, err := w.gate.Undo(w.t.Context(), &g.Grant, seq)
	must(w.t, err)
	if l == nil || l.Undoes != seq {
		w.t.Fatalf("landing %+v, want one that undoes %d", l, seq)
	}
	return l
}

// shows: GP-18
func TestUndoNamesLaterLandings(t *testing.T) {
	w := newWorld(t, map[string]string{"test/a": "0", "test/b": "0", "test/c": "0"}, gate.Options{})
	otter := w.hold("otter", "test/a", "test/b", "test/c")
	first := w.commit(otter, gate.Put("test/a", []byte("1")), gate.Put("test/b", []byte("1")), gate.Put("test/c", []byte("1")))
	w.releases(otter)
	heron := w.hold("heron", "test/a", "test/b", "test/c")
	second := w.commit(heron, gate.Put("test/a", []byte("2")))
	third := w.commit(heron, gate.Delete("test/b"))
	w.plant(map[string]string{"test/c": "by hand"})

	w.undoRefused(heron, first.Seq, "test/a was changed since, by landing "+seqOf(second)+" of heron",
		"test/b was changed since, by landing "+seqOf(third)+" of heron", "test/c was changed since, outside the gate", "lockkeeper undo "+seqOf(third)+", then "+seqOf(second))
	w.undo(heron, third.Seq)
	w.undo(heron, second.Seq)
	w.plant(map[string]string{"test/c": "1"})
	w.undo(heron, first.Seq)
	w.want(map[string]string{"test/a": "0", "test/b": "0", "test/c": "0"})
	w.releases(heron)
}

func seqOf(l *lockkeeper.Landing) string { return strconv.FormatUint(l.Seq, 10) }

// An undo is a landing like any other.
func TestUndoOfAnUndo(t *testing.T) {
	w := newWorld(t, map[string]string{"test/a": "old", "test/gone": "g"}, gate.Options{})
	g := w.hold("otter", "test/a", "test/gone", "test/new/b")
	l := w.commit(g, gate.Put("test/a", []byte("new")), gate.Delete("test/gone"), gate.Put("test/new/b", []byte("b")))
	before, after := map[string]string{"test/a": "old", "test/gone": "g"}, map[string]string{"test/a": "new", "test/new/b": "b"}
	back := w.undo(g, l.Seq)
	w.want(before)
	if _, err := os.Stat(w.in("test/new")); err == nil {
		t.Error("the directory that the landing made is still there")
	}
	w.undoRefused(g, l.Seq, "landing "+seqOf(back)+" has undone it")
	w.undo(g, back.Seq)
	w.want(after)
	w.releases(g)

	stranger := w.hold("heron", "test/a")
	w.undoRefused(stranger, l.Seq, "(coverage)", "test/gone")
	w.undoRefused(&lock.Grant{}, l.Seq, "(grant)")
	w.undoRefused(stranger, 10_000, "no landing has this number")
	w.releases(stranger)
}

// Originals are kept for a limited time. After that, an undo that needs an original is refused,
// and any other undo still works.
func TestUndoAfterTheOriginalsAreGone(t *testing.T) {
	clock := storetest.NewClock()
	w := &world{t: t, dir: t.TempDir(), store: memstore.New(space, memstore.Options{Now: clock.Now})}
	w.plant(map[string]string{"test/a": "old"})
	must(t, os.Mkdir(w.in(".lockkeeper"), 0o700))
	clock.JumpWall(time.Since(clock.Now().Wall) - 4*24*time.Hour) // four days ago
	w.open(gate.Options{Keep: 5 * 24 * time.Hour})
	g := w.hold("otter", "test/a", "test/new")
	replaced := w.commit(g, gate.Put("test/a", []byte("new")))
	created := w.commit(g, gate.Put("test/new", []byte("new")))
	if r, err := w.gate.Recover(t.Context()); err != nil || r.Forgot != 0 {
		t.Errorf("forgot too early: %+v, %v", r, err)
	}
	w.open(gate.Options{Keep: 2 * 24 * time.Hour})
	if r, err := w.gate.Recover(t.Context()); err != nil || r.Forgot != 1 {
		t.Errorf("forgot %+v, %v; want one day", r, err)
	}
	w.undoRefused(g, replaced.Seq, "test/a", "no longer kept")
	w.undo(g, created.Seq)
	w.want(map[string]string{"test/a": "new"})
	w.releases(g)
}

// A landing that was rolled back, or is not complete, cannot be undone.
func TestUndoOfWhatDidNotLand(t *testing.T) {
	w := &world{}
	disk := newMeddle(durabletest.Exchange, 1, func() { must(t, os.WriteFile(w.in("test/a"), []byte("theirs"), 0o644)) })
	*w = *newWorld(t, map[string]string{"test/a": "old", "test/b": "old"}, gate.Options{Disk: disk})
	g := w.hold("otter", "test/a")
	disk.armed = true
	if _, err := w.gate.Write(t.Context(), &g.Grant, "test/a", []byte("new")); err == nil {
		t.Fatal("landed over an edit")
	}
	undone := w.events(lockkeeper.EventUndone)
	landed := w.events(lockkeeper.EventLanded)
	if len(undone) != 1 || len(landed) != 1 {
		t.Fatalf("events %v %v", landed, undone)
	}
	w.undoRefused(g, landed[0].Seq, "it was rolled back")
	w.releases(g)

	l := w.abandon(2, gate.Put("test/b", []byte("new")), gate.Put("test/c", []byte("new")))
	w.open(gate.Options{})
	if _, err := w.gate.Undo(t.Context(), &lockkeeper.Grant{}, l.Seq); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "gate recover") {
		t.Errorf("undo of what is not done: %v", err)
	}
	if _, err := w.gate.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.dir, ".lockkeeper", "site")); err != nil { // simulates another disk
		t.Fatal(err)
	}
	w.open(gate.Options{})
	if _, err := w.gate.Undo(t.Context(), &lockkeeper.Grant{}, l.Seq); err == nil || !strings.Contains(err.Error(), "its files are on") {
		t.Errorf("undo elsewhere: %v", err)
	}
}
