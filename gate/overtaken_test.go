package gate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/gate"
	"lockkeeper/lock"
)

// A recovery or writer that is delayed at any operation changes nothing once its landing has
// ended and another holder has the paths.
//
// shows: SW-38 GP-4 GP-31
func TestLateByAnyOperation(t *testing.T) {
	inMemory(t)
	kinds := map[string][]gate.Change{
		"replace": {gate.Put("test/a", []byte("new"))},
		"delete":  {gate.Delete("test/b")},
		"deletes": {gate.Delete("test/a"), gate.Delete("test/b")},
		"several": {gate.Put("test/a", []byte("new")), gate.Delete("test/b"), gate.Put("test/n/n", []byte("new"))},
	}
	files := map[string]string{"test/a": "old", "test/b": "old", "test/warm": "old"}
	for kind, changes := range kinds {
		for _, edited := range []bool{false, true} {
			t.Run(fmt.Sprintf("recovery of %s edited %t", kind, edited), func(t *testing.T) {
				// If the old content is back, a late recovery finds the tree as it was when the
				// landing was decided.
				content := map[bool]string{false: "the next holder's", true: "old"}[edited]
				for k, more := 0, true; more; k++ {
					w := newWorld(t, files, gate.Options{})
					l := w.abandon(1, changes...)
					if edited {
						w.plant(map[string]string{l.Changes[len(l.Changes)-1].Path: "theirs"})
					}
					more = late(w, k, l.GrantID, content, changes, func(*lock.Grant) { _ = w.gate.RecoverLandings(t.Context(), l.GrantID) })
				}
			})
		}
		t.Run("writer of "+kind, func(t *testing.T) {
			for k, more := 0, true; more; k++ {
				w := newWorld(t, files, gate.Options{})
				more = late(w, k, "", "the next holder's", changes, func(g *lock.Grant) { _, _ = w.gate.Commit(t.Context(), &g.Grant, changes) })
			}
		})
	}
}

// late makes another process revoke the grant, end the landing decided under it and write the
// same paths, all before operation k of do. Afterwards do must not change the tree. late
// reports whether do reached operation k.
func late(w *world, k int, grantID, content string, changes []gate.Change, do func(*lock.Grant)) (reached bool) {
	t := w.t
	w.open(gate.Options{})
	locks, other := w.locks, w.gate
	disk := &durabletest.FaultyDisk{}
	var mu sync.Mutex
	armed := false
	var left map[string]string
	disk.At = func(now int, _ durabletest.Op) {
		mu.Lock()
		defer mu.Unlock()
		if !armed || now != k {
			return
		}
		armed, reached = false, true
		person := lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}
		if err := locks.ForceRelease(t.Context(), grantID, person, "late"); err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
			t.Errorf("it could not be taken away: %v", err)
			return
		}
		next := &world{t: t, dir: w.dir, store: w.store, locks: locks, gate: other}
		var paths []string
		var theirs []gate.Change
		for _, c := range changes {
			paths = append(paths, c.Path)
			if content == "old" && c.Path == "test/n/n" { // the path did not exist
				theirs = append(theirs, gate.Delete(c.Path))
				continue
			}
			theirs = append(theirs, gate.Put(c.Path, []byte(content)))
		}
		heron := next.hold("heron", paths...)
		next.commit(heron, theirs...)
		left = scan(t, w.dir, ".lockkeeper")
	}
	w.open(gate.Options{Disk: disk})
	var g *lock.Grant
	if grantID == "" {
		w.commit(w.hold("otter", "test/warm"), gate.Put("test/warm", []byte("new"))) // so that the commit below reuses its stage
		g = w.hold("otter", pathsOf(changes)...)
		grantID = g.ID
	}
	k += len(disk.Trace())
	mu.Lock()
	armed = true
	mu.Unlock()
	do(g)
	mu.Lock()
	armed = false
	mu.Unlock()
	now := scan(t, w.dir, ".lockkeeper")
	if _, there := left["test/n"]; there && content == "old" { // an empty directory may be removed late: docs/safety.md
		delete(left, "test/n")
		delete(now, "test/n")
	}
	if d := differences(left, now); reached && len(d) > 0 {
		t.Errorf("late by operation %d: what the next holder left was changed: %v", k, d)
	}
	return reached
}

func pathsOf(changes []gate.Change) (paths []string) {
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	return paths
}

// A release while the gate keeps the originals does not lose them.
//
// shows: GP-18
func TestOriginalsSurviveARelease(t *testing.T) {
	inMemory(t)
	for k, more := 0, true; more; k++ {
		w := newWorld(t, map[string]string{"test/a": "old"}, gate.Options{})
		other := w.gate
		disk := &durabletest.FaultyDisk{}
		more = false
		id, at := "", 0
		disk.At = func(now int, _ durabletest.Op) {
			if now == at && id != "" {
				more = true
				if err := other.RecoverLandings(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
		}
		w.open(gate.Options{Disk: disk})
		g := w.hold("otter", "test/a")
		id, at = g.ID, k+len(disk.Trace())
		_, err := w.gate.Commit(t.Context(), &g.Grant, []gate.Change{gate.Put("test/a", []byte("new"))})
		id = ""
		if err != nil {
			continue // the commit was refused or taken over; other tests check that
		}
		landed := w.events(lockkeeper.EventLanded)
		if _, err := w.gate.Undo(t.Context(), &g.Grant, landed[0].Seq); err != nil {
			t.Errorf("released at operation %d, undo: %v", k, err)
		}
		w.want(map[string]string{"test/a": "old"})
	}
}

// A codebase from elsewhere may contain forged stages.
func TestHostileStages(t *testing.T) {
	files := map[string]string{".git/HEAD": "ref", "test/a": "mine", "test/tmp/0123456789abcdef/x": "mine too"}
	w := newWorld(t, files, gate.Options{})
	for stage, at := range map[string]string{"x": ".git", "y": "test", "z.1.0123456789abcdef": "../tmp/0123456789abcdef", "a.1.fedcba9876543210": "test/a"} {
		commit := stage[strings.LastIndex(stage, ".")+1:]
		for _, note := range []string{commit + ".at", "at"} {
			w.plant(map[string]string{".lockkeeper/stage/" + stage + "/" + note: at, ".lockkeeper/recover/" + stage + "/" + note: at})
		}
	}
	w.plant(map[string]string{".lockkeeper/stage/spare.x/test": "not mine"})
	w.plant(map[string]string{".lockkeeper/stage/.DS_Store": "x"})
	if _, err := w.gate.Recover(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	w.want(files)
}

// A copy of a tree is another site, so it cannot end a landing that was decided in the
// original.
func TestCopiedRoot(t *testing.T) {
	w := newWorld(t, map[string]string{"test/a": "old", "test/b": "old"}, gate.Options{})
	l := w.abandon(1, gate.Put("test/a", []byte("new")), gate.Put("test/b", []byte("new")))
	original := w.dir
	w.dir = filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(w.dir, os.DirFS(original)))
	w.open(gate.Options{})
	if err := w.gate.RecoverLandings(t.Context(), l.GrantID); err == nil || !strings.Contains(err.Error(), "its files are on") {
		t.Errorf("a copy recovered it: %v", err)
	}
	w.dir = original
	w.open(gate.Options{})
	must(t, w.gate.RecoverLandings(t.Context(), l.GrantID))
	w.want(map[string]string{"test/a": "new", "test/b": "new"})
}
