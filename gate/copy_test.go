package gate_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/gate"
)

// A clone on another machine learns which landings it lacks, until it has all of them.
//
// shows: DL-78 DL-79
func TestCopyThatIsBehind(t *testing.T) {
	w := newWorld(t, map[string]string{"test/a": "old", "test/b": "old", "test/gone": "old"}, gate.Options{Site: "otter.example:/src"})
	clone := &world{t: t, dir: filepath.Join(t.TempDir(), "clone"), store: w.store}
	must(t, os.CopyFS(clone.dir, os.DirFS(w.dir)))
	clone.open(gate.Options{})
	all := []string{"test/a", "test/b", "test/gone", "test/new"}
	must(t, clone.gate.CheckCopy(t.Context(), files(all...)...))

	g := w.hold("otter", all...)
	l := w.commit(g, gate.Put("test/a", []byte("new")), gate.Delete("test/gone"), gate.Put("test/new", []byte("new")))
	must(t, w.gate.CheckCopy(t.Context(), files(all...)...)) // the original has all landings
	err := clone.gate.CheckCopy(t.Context(), files(all...)...)
	for _, path := range []string{"test/a", "test/gone", "test/new"} {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("the clone is not told of %s: %v", path, err)
		}
	}
	var behind *lockkeeper.BehindError
	if !errors.As(err, &behind) || behind.Landing != l.Seq || behind.Site != "otter.example:/src" || strings.Contains(err.Error(), "test/b") {
		t.Errorf("the clone is told %v", err)
	}
	clone.plant(map[string]string{"test/a": "new", "test/new": "new"})
	must(t, os.Remove(filepath.Join(clone.dir, "test/gone")))
	must(t, clone.gate.CheckCopy(t.Context(), files(all...)...))
}

// A directory is behind if a file in it is, at any depth, and up to date with all of them.
func TestDirectoryThatIsBehind(t *testing.T) {
	w := newWorld(t, map[string]string{"test/deep/a": "old", "test/b": "old"}, gate.Options{})
	clone := &world{t: t, dir: filepath.Join(t.TempDir(), "clone"), store: w.store}
	must(t, os.CopyFS(clone.dir, os.DirFS(w.dir)))
	clone.open(gate.Options{})
	dir := func(path string) lockkeeper.Target { return lockkeeper.Target{Path: path, Kind: lockkeeper.Dir} }
	must(t, clone.gate.CheckCopy(t.Context(), dir(lockkeeper.Root)))
	otter := w.hold("otter", "test/deep/a", "test/deep/new")
	w.commit(otter, gate.Put("test/deep/a", []byte("new")), gate.Put("test/deep/new", []byte("new")))
	must(t, otter.Release(t.Context()))
	must(t, w.gate.CheckCopy(t.Context(), dir(lockkeeper.Root)))
	must(t, clone.gate.CheckCopy(t.Context(), dir("test/de"), files("test/b")[0]))
	for _, path := range []string{lockkeeper.Root, "test", "test/deep"} {
		err := clone.gate.CheckCopy(t.Context(), dir(path))
		if err == nil || !strings.Contains(err.Error(), "test/deep/a") || !strings.Contains(err.Error(), "test/deep/new") {
			t.Errorf("%s: %v", path, err)
		}
	}
	clone.plant(map[string]string{"test/deep/a": "new", "test/deep/new": "new"})
	must(t, clone.gate.CheckCopy(t.Context(), dir(lockkeeper.Root)))
	// A landing here, over one that was made elsewhere, does not make this copy old.
	clone.commit(clone.hold("heron", "test/deep/a"), gate.Put("test/deep/a", []byte("newer")))
	must(t, clone.gate.CheckCopy(t.Context(), dir(lockkeeper.Root)))
	if err := w.gate.CheckCopy(t.Context(), dir("test")); err == nil {
		t.Error("the original is not told of the landing in the clone")
	}
}

func files(paths ...string) (list []lockkeeper.Target) {
	for _, path := range paths {
		list = append(list, lockkeeper.Target{Path: path, Kind: lockkeeper.File})
	}
	return list
}

// A decided landing whose disk is lost blocks its paths until a person abandons it.
//
// shows: GP-4 DL-76
func TestAbandon(t *testing.T) {
	w := newWorld(t, map[string]string{"test/a": "old", "test/b": "old"}, gate.Options{})
	clone := &world{t: t, dir: filepath.Join(t.TempDir(), "clone"), store: w.store}
	must(t, os.CopyFS(clone.dir, os.DirFS(w.dir)))
	l := w.abandon(1, gate.Put("test/a", []byte("new")), gate.Put("test/b", []byte("new")))
	clone.open(gate.Options{})
	ada := lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}
	for name, try := range map[string]func() error{
		"by an agent": func() error {
			_, err := clone.gate.Abandon(t.Context(), l.Seq, lockkeeper.Actor{Name: "otter", Kind: lockkeeper.ActorAgent}, "why not")
			return err
		},
		"here":          func() error { _, err := w.gate.Abandon(t.Context(), l.Seq, ada, "lost"); return err },
		"for no reason": func() error { _, err := clone.gate.Abandon(t.Context(), l.Seq, ada, ""); return err },
		"unknown":       func() error { _, err := clone.gate.Abandon(t.Context(), 99, ada, "lost"); return err },
	} {
		if err := try(); err == nil {
			t.Errorf("%s: it was abandoned", name)
		}
	}
	if err := clone.locks.ForceRelease(t.Context(), l.GrantID, ada, "its machine is gone"); err == nil {
		t.Error("the grant was freed while its landing was open")
	}
	_, err := clone.gate.Abandon(t.Context(), l.Seq, ada, "the disk is lost")
	must(t, err)
	clone.hold("heron", "test/a", "test/b")
	events := clone.events(lockkeeper.EventUndone)
	if len(events) != 1 || !strings.Contains(events[0].Reason, "ada") || !strings.Contains(events[0].Reason, "the disk is lost") {
		t.Errorf("events %+v", events)
	}
	if _, err := clone.gate.Abandon(t.Context(), l.Seq, ada, "again"); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("again: %v", err)
	}
}
