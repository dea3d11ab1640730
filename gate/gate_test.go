package gate_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
	"lockkeeper/tree"
)

// A world is a tree with its own gate.
type world struct {
	t     *testing.T
	dir   string
	locks *lock.Manager
	store store.Store
	gate  *gate.Gate
}

const space = "7f0c7a39-0000-4000-8000-000000000001"

// newWorld creates a tree of files, content by path, with an in-memory lock store.
func newWorld(t *testing.T, files map[string]string, opt gate.Options) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), store: memstore.New(space, memstore.Options{})}
	w.plant(files)
	if err := os.MkdirAll(filepath.Join(w.dir, ".lockkeeper"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.open(opt)
	return w
}

func (w *world) open(opt gate.Options) {
	w.t.Helper()
	root, err := tree.Open(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	var g *gate.Gate
	locks := lock.New(w.store, lock.Options{RecoverLandings: func(ctx context.Context, id string) error { return g.RecoverLandings(ctx, id) }})
	if g, err = gate.Open(root, w.store, locks, opt); err != nil {
		w.t.Fatal(err)
	}
	w.gate, w.locks = g, locks
	w.t.Cleanup(func() {
		if err := errors.Join(g.Close(context.WithoutCancel(w.t.Context())), locks.Close(), root.Close()); err != nil && !errors.Is(err, fs.ErrClosed) {
			w.t.Log("close:", err)
		}
	})
}

func (w *world) plant(files map[string]string) {
	w.t.Helper()
	for path, content := range files {
		path = filepath.Join(w.dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

// hold acquires a write grant on paths.
func (w *world) hold(holder string, paths ...string) *lock.Grant {
	w.t.Helper()
	req := lockkeeper.Request{Holder: holder}
	for _, p := range paths {
		req.Locks = append(req.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: p, Kind: lockkeeper.File}, Mode: lockkeeper.Write})
	}
	g, err := w.locks.TryAcquire(w.t.Context(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

func (w *world) commit(g *lock.Grant, changes ...gate.Change) *lockkeeper.Landing {
	w.t.Helper()
	l, err := w.gate.Commit(w.t.Context(), &g.Grant, changes)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// files returns the content of all files in the tree except the gate's own directory.
func (w *world) files() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.dir, path)
		switch {
		case err != nil:
			return err
		case rel == ".lockkeeper":
			return fs.SkipDir
		case d.Type().IsRegular():
			content, err := os.ReadFile(path)
			out[rel] = string(content)
			return err
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) want(files map[string]string) {
	w.t.Helper()
	got := w.files()
	for path, content := range files {
		if got[path] != content {
			w.t.Errorf("%s holds %.40q, want %.40q", path, got[path], content)
		}
	}
	for path := range got {
		if _, ok := files[path]; !ok {
			w.t.Errorf("%s should not be there", path)
		}
	}
}

// noStages checks that no landing or recovery is in progress.
func (w *world) noStages() {
	w.t.Helper()
	for _, dir := range []string{"stage", "recover"} {
		entries, err := os.ReadDir(filepath.Join(w.dir, ".lockkeeper", dir))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range entries {
			inside, err := os.ReadDir(filepath.Join(w.dir, ".lockkeeper", dir, e.Name()))
			if err == nil && len(inside) == 0 && strings.HasPrefix(e.Name(), "spare.") {
				continue // the spare stage of an open gate
			}
			w.t.Errorf("%s/%s was left behind", dir, e.Name())
		}
	}
}

// refused checks that an error is a refusal by one check.
func (w *world) refused(err error, check string, words ...string) {
	w.t.Helper()
	var v *lockkeeper.LockViolationError
	if !errors.As(err, &v) || v.Check != check {
		w.t.Fatalf("error %v, want a violation by %s", err, check)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("error %q does not say %q", err, word)
		}
	}
}

func (w *world) events(kind lockkeeper.EventKind) (found []lockkeeper.Event) {
	w.t.Helper()
	all, err := w.locks.Events(w.t.Context(), store.EventQuery{Limit: 10_000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, ev := range all {
		if ev.Kind == kind {
			found = append(found, ev)
		}
	}
	return found
}

// shows: SW-33 SW-34 PL-54 PL-57 GP-18
func TestCommitAllKinds(t *testing.T) {
	w := newWorld(t, map[string]string{"app/models/user.rb": "old", "app/models/gone.rb": "bye", "app/models/run.rb": "#!", "app/models/a.rb": "moved", "other": "x"}, gate.Options{})
	g := w.hold("otter", "app/models/user.rb", "app/models/gone.rb", "app/models/run.rb", "app/models/a.rb", "app/views/new/deep/b.erb", "app/models/new.rb")
	changes := slices.Concat([]gate.Change{
		gate.Put("app/models/user.rb", []byte("new")),
		gate.Put("app/models/new.rb", []byte("fresh")),
		gate.Delete("app/models/gone.rb"),
		chmod("app/models/run.rb", 0o755),
	}, gate.Rename("app/models/a.rb", "app/views/new/deep/b.erb"))
	l := w.commit(g, changes...)
	w.want(map[string]string{"app/models/user.rb": "new", "app/models/new.rb": "fresh", "app/models/run.rb": "#!", "app/views/new/deep/b.erb": "moved", "other": "x"})
	if info, err := os.Stat(filepath.Join(w.dir, "app/models/run.rb")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	w.noStages()
	if got := w.events(lockkeeper.EventLanded); len(got) != 1 || got[0].Seq != l.Seq {
		t.Errorf("events %v, want one for landing %d", got, l.Seq)
	}
	if err := g.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if back, err := w.gate.Landing(t.Context(), l.Seq); err != nil || back.State != lockkeeper.Committed {
		t.Errorf("landing %v, %v; want it committed", back, err)
	}

	again := w.hold("otter", "app/models/user.rb", "app/models/gone.rb", "app/models/run.rb", "app/models/a.rb", "app/views/new/deep/b.erb", "app/models/new.rb")
	if _, err := w.gate.Undo(t.Context(), &again.Grant, l.Seq); err != nil {
		t.Fatal(err)
	}
	w.want(map[string]string{"app/models/user.rb": "old", "app/models/gone.rb": "bye", "app/models/run.rb": "#!", "app/models/a.rb": "moved", "other": "x"})
	if _, err := os.Stat(filepath.Join(w.dir, "app/views")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directories that the landing made are still there: %v", err)
	}
	if nothing := w.commit(again, gate.Put("app/models/user.rb", []byte("old"))); nothing != nil {
		t.Errorf("landing %v for no difference", nothing)
	}
}

// shows: SW-35 SW-36 SW-37 SW-38 PL-55 PL-58
func TestThreeChecks(t *testing.T) {
	files := map[string]string{"app/models/user.rb": "old", "lib/x.rb": "lib", "app/models/read.rb": "r", "lockkeeper.yaml": "y", "test/sub/.git/config": "c"}
	w := newWorld(t, files, gate.Options{Allowed: []string{"app/models", "test/", "lockkeeper.yaml"}})
	req := lockkeeper.Request{Holder: "otter", Locks: []lockkeeper.Lock{
		{Target: lockkeeper.Target{Path: "app/models/user.rb", Kind: lockkeeper.File}, Mode: lockkeeper.Write},
		{Target: lockkeeper.Target{Path: "app/models/read.rb", Kind: lockkeeper.File}, Mode: lockkeeper.Read},
		{Target: lockkeeper.Target{Path: "lib/x.rb", Kind: lockkeeper.File}, Mode: lockkeeper.Write},
		{Target: lockkeeper.Target{Path: "lockkeeper.yaml", Kind: lockkeeper.File}, Mode: lockkeeper.Write},
	}}
	g, err := w.locks.TryAcquire(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	w.hold("heron", "app/models/theirs.rb")
	for path, want := range map[string]string{
		"lib/x.rb": "allowlist", "lockkeeper.yaml": "allowlist", "test/sub/.git/config": "allowlist", "test/.LockKeeper/x": "allowlist",
		"app/models/read.rb": "coverage", "app/models/theirs.rb": "coverage", "app/models/user.rb.bak": "coverage",
	} {
		_, err := w.gate.Write(t.Context(), &g.Grant, path, []byte("forced"))
		w.refused(err, want, path)
		if path == "app/models/theirs.rb" {
			w.refused(err, want, "heron")
		}
	}
	for name, grant := range map[string]lockkeeper.Grant{
		"none": {}, "wrong token": {ID: g.ID, Token: "x"}, "unknown": {ID: "7f0c7a39-0000-4000-8000-00000000dead", Token: g.Token}, "malformed": {ID: "../../x"},
	} {
		_, err := w.gate.Write(t.Context(), &grant, "app/models/user.rb", []byte("forced"))
		if w.refused(err, "grant"); t.Failed() {
			t.Log(name)
		}
	}
	if err := g.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = w.gate.Write(t.Context(), &g.Grant, "app/models/user.rb", []byte("late"))
	w.refused(err, "grant")
	w.want(files)
	gaps := w.events(lockkeeper.EventGap)
	kept, err := w.gate.Rescue().List(t.Context())
	if err != nil || len(gaps) != 12 || len(kept) != 12 {
		t.Errorf("%d gaps, %d kept, %v; want 12", len(gaps), len(kept), err)
	}
}

// No edit is overwritten, and a commit lands as a whole or not at all.
//
// shows: SW-38 GP-4
func TestChangedByAnotherWriter(t *testing.T) {
	w := newWorld(t, map[string]string{"test/a": "1", "test/b": "1"}, gate.Options{})
	g := w.hold("otter", "test/a", "test/b")
	w.commit(g, gate.Put("test/a", []byte("2")))
	w.plant(map[string]string{"test/a": "a person's edit"})
	_, err := w.gate.Commit(t.Context(), &g.Grant, []gate.Change{gate.Put("test/b", []byte("2")), gate.Put("test/a", []byte("3"))})
	w.refused(err, "base", "test/a", "another writer")
	w.want(map[string]string{"test/a": "a person's edit", "test/b": "1"})
	if err := g.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// chmod changes the permissions of a file.
func chmod(path string, mode fs.FileMode) gate.Change { return gate.Change{Path: path, Mode: &mode} }
