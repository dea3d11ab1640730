package gate_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/store"
)

// A lock on a directory above the target covers it, as that of an operation on a whole project.
// A read lock, or a lock on the node alone, does not.
func TestReplaceDirUnderALockAbove(t *testing.T) {
	w := newWorld(t, map[string]string{"maps/m1/current/a": "old"}, atMaps)
	above := w.holdDir("maps")
	w.replace(above, "maps/m1", "current", map[string]string{"a": "new"})
	w.want(map[string]string{"maps/m1/current/a": "new"})
	w.releases(above)
	for _, l := range []lockkeeper.Lock{
		{Target: lockkeeper.Target{Path: "maps", Kind: lockkeeper.Dir}, Mode: lockkeeper.Read},
		{Target: lockkeeper.Target{Path: "maps/m1", Kind: lockkeeper.Node}, Mode: lockkeeper.Write},
		{Target: lockkeeper.Target{Path: "map", Kind: lockkeeper.Dir}, Mode: lockkeeper.Write},
	} {
		g, err := w.locks.TryAcquire(t.Context(), lockkeeper.Request{Holder: "cartographer", Policy: "dal", Locks: []lockkeeper.Lock{l}})
		must(t, err)
		w.harmless(fmt.Sprint(l), func() error {
			_, err := w.gate.ReplaceDir(t.Context(), &g.Grant, "maps/m1", "current", filled(map[string]string{"a": "newer"}))
			return err
		}, "(coverage)", "--policy dal")
		w.releases(g)
	}
}

// The audit trail has the steps of a replacement in their order.
//
// shows: DL-46
func TestReplaceDirIsRecorded(t *testing.T) {
	w := newWorld(t, map[string]string{"maps/m1/current/a": "old"}, atMaps)
	g := w.holdDir("maps/m1")
	l := w.replace(g, "maps/m1", "current", map[string]string{"a": "new"})
	w.releases(g)
	events, err := w.locks.Events(t.Context(), store.EventQuery{Limit: 100})
	must(t, err)
	var kinds []lockkeeper.EventKind
	for _, ev := range events {
		kinds = append(kinds, ev.Kind)
		if ev.GrantID != g.ID {
			t.Errorf("%s is not of the grant: %+v", ev.Kind, ev)
		}
	}
	want := []lockkeeper.EventKind{lockkeeper.EventAcquired, lockkeeper.EventLanded, lockkeeper.EventReplaced, lockkeeper.EventReleased}
	if !slices.Equal(kinds, want) {
		t.Fatalf("recorded %v, want %v", kinds, want)
	}
	if landed := events[1]; landed.Data["draft"] != l.Draft || !strings.HasPrefix(l.Draft, "maps/m1/tmp/") || !strings.Contains(landed.Reason, "steps 2 to 5") || landed.Locks[0].Kind != lockkeeper.Dir {
		t.Errorf("landed: %+v", landed)
	}
	if done := events[2]; done.Data["landing"] != fmt.Sprint(l.Seq) || !strings.Contains(done.Reason, "steps 6 to 9") || done.Holder != "cartographer" {
		t.Errorf("replaced: %+v", done)
	}
}

// A replaced directory keeps its permissions; those of a new one are 0755.
func TestReplaceDirKeepsPermissions(t *testing.T) {
	w := newWorld(t, map[string]string{"maps/m1/current/a": "old"}, atMaps)
	must(t, os.Chmod(w.in("maps/m1/current"), 0o750))
	from := t.TempDir() // 0700
	must(t, os.MkdirAll(from+"/sub", 0o755), os.Chmod(from+"/sub", 0o711), os.WriteFile(from+"/sub/run", []byte("x"), 0o644), os.Chmod(from+"/sub/run", 0o755))
	g := w.holdDir("maps/m1")
	for final, want := range map[string]fs.FileMode{"current": 0o750, "fresh": 0o755} {
		_, err := w.gate.ReplaceDirFrom(t.Context(), &g.Grant, "maps/m1", final, from)
		must(t, err)
		for name, want := range map[string]fs.FileMode{"": want, "/sub": 0o711, "/sub/run": 0o755} {
			if info, err := os.Stat(w.in("maps/m1/" + final + name)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s%s is %v, %v; want %v", final, name, info.Mode(), err, want)
			}
		}
	}
	must(t, os.Symlink("/etc/passwd", from+"/link"))
	w.harmless("a link", func() error {
		_, err := w.gate.ReplaceDirFrom(t.Context(), &g.Grant, "maps/m1", "current", from)
		return err
	}, "neither a file nor a directory")
	w.releases(g)
}

// A directory above the draft, or linked to it, is no source: a copy of it would have itself in it.
func TestReplaceDirFromAbove(t *testing.T) {
	w := newWorld(t, map[string]string{"maps/m1/current/a": "old", "maps/m1/tmp/.keep": ""}, atMaps)
	g := w.holdDir("maps/m1")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(w.in("maps/m1"), link))
	for _, from := range []string{w.in("maps/m1/tmp"), w.in("maps/m1"), w.in("maps"), w.in("."), "/", link} {
		w.harmless(from, func() error {
			_, err := w.gate.ReplaceDirFrom(t.Context(), &g.Grant, "maps/m1", "current", from)
			return err
		}, "from", "inside it")
	}
	_, err := w.gate.ReplaceDirFrom(t.Context(), &g.Grant, "maps/m1", "other", w.in("maps/m1/current"))
	must(t, err)
	w.want(map[string]string{"maps/m1/current/a": "old", "maps/m1/other/a": "old", "maps/m1/tmp/.keep": ""})
	w.releases(g)
}
