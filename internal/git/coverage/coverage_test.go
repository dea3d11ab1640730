package coverage_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/git"
	"lockkeeper/internal/git/coverage"
	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/project"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/sqlstore"
)

// A workTree is a root in a git work tree without commits.
type workTree struct {
	*testing.T
	*project.Project
	dir string
}

func newWorkTree(t *testing.T) *workTree {
	t.Helper()
	state := t.TempDir()
	s := project.Settings{Dir: t.TempDir(), Env: func(name string) (string, bool) { return state, name == "XDG_STATE_HOME" }}
	if _, err := project.Init(t.Context(), s, project.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	a, err := project.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &workTree{t, a, s.Dir}
	w.git("init", "-q")
	return w
}

func (w *workTree) git(args ...string) {
	w.Helper()
	gittest.Run(w.T, w.dir, args...)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// hold acquires a grant under a policy that permits extensions and write locks on trees.
func (w *workTree) hold(mode lockkeeper.Mode, path string) *lock.Grant {
	w.Helper()
	return w.ask(lockkeeper.Request{Holder: "otter", Policy: "dal"}, mode, path)
}

func (w *workTree) ask(req lockkeeper.Request, mode lockkeeper.Mode, path string) *lock.Grant {
	w.Helper()
	req.Locks = []lockkeeper.Lock{w.lock(mode, path)}
	g, err := w.Hold(w.Context(), req, 0)
	if err != nil {
		w.Fatal(err)
	}
	return g
}

func (w *workTree) lock(mode lockkeeper.Mode, path string) lockkeeper.Lock {
	w.Helper()
	l, err := w.Resolve(mode, path)
	if err != nil {
		w.Fatal(err)
	}
	return l
}

func (w *workTree) release(g *lock.Grant) {
	w.Helper()
	if err := g.Release(context.Background()); err != nil {
		w.Fatal(err)
	}
}

// when returns the time of the newest event of a kind.
func (w *workTree) when(kind lockkeeper.EventKind) time.Time {
	w.Helper()
	events, err := w.Locks.Events(w.Context(), store.EventQuery{Latest: true, Limit: 1_000})
	if err != nil {
		w.Fatal(err)
	}
	for _, ev := range events {
		if ev.Kind == kind {
			return ev.At
		}
	}
	w.Fatalf("no event %s", kind)
	return time.Time{}
}

// change returns the change of a path that was modified at a time.
func (w *workTree) change(path string, modified time.Time) coverage.Change {
	w.Helper()
	if err := os.Chtimes(filepath.Join(w.dir, path), modified, modified); err != nil {
		w.Fatal(err)
	}
	return w.find(path)
}

func (w *workTree) find(path string) coverage.Change {
	w.Helper()
	done, err := coverage.Find(w.Context(), w.Project, git.NewWorkTree(w.dir, w.dir, os.Environ()), nil, false)
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range done.List {
		if c.Path == path {
			return c
		}
	}
	w.Fatalf("%s is not among %+v", path, done.List)
	return coverage.Change{}
}

func (w *workTree) want(path string, modified time.Time, state string) {
	w.Helper()
	if c := w.change(path, modified); c.State != state || c.BeforeLog {
		w.Errorf("modified %s: %+v, want %s", modified, c, state)
	}
}

// A change is covered from the time when its lock was granted to the time when it ended. At the
// beginning there is some tolerance for the clock of files.
//
// shows: CF-15
func TestChangeIsCoveredByAGrantThatEnded(t *testing.T) {
	w := newWorkTree(t)
	write(t, filepath.Join(w.dir, "app/a.rb"), "a")
	write(t, filepath.Join(w.dir, "app/b.rb"), "b")
	first := w.hold(lockkeeper.Write, "app/a.rb")
	from := w.when(lockkeeper.EventAcquired)
	w.release(first)
	until := w.when(lockkeeper.EventReleased)
	w.release(w.hold(lockkeeper.Read, "app/a.rb"))

	w.want("app/a.rb", from, coverage.Covered)
	w.want("app/a.rb", from.Add(-5*time.Millisecond), coverage.Covered)
	w.want("app/a.rb", from.Add(-20*time.Millisecond), coverage.Uncovered)
	w.want("app/a.rb", until, coverage.Covered)
	w.want("app/a.rb", until.Add(time.Millisecond), coverage.Uncovered)
	w.want("app/b.rb", until, coverage.Uncovered)

	c := w.change("app/a.rb", until)
	if c.Holder != "otter" || c.GrantID != first.ID || !c.HeldFrom.Equal(from) || !c.HeldUntil.Equal(until) || !c.Modified.Equal(until) {
		t.Errorf("%+v, want grant %s from %s to %s", c, first.ID, from, until)
	}
}

func TestChangeIsCoveredByALockOnTheTreeAbove(t *testing.T) {
	w := newWorkTree(t)
	write(t, filepath.Join(w.dir, "app/data/x/y"), "y")
	write(t, filepath.Join(w.dir, "app/database"), "not below")
	g := w.hold(lockkeeper.Write, "app/data")
	w.release(g)
	until := w.when(lockkeeper.EventReleased)
	w.want("app/data/x/y", until, coverage.Covered)
	w.want("app/database", until, coverage.Uncovered)
}

// A lock that a grant gained later covers changes from that time on.
func TestChangeBeforeTheGrantGrewIsUncovered(t *testing.T) {
	w := newWorkTree(t)
	write(t, filepath.Join(w.dir, "a"), "a")
	write(t, filepath.Join(w.dir, "b"), "b")
	const earlier = 20 * time.Millisecond
	g := w.hold(lockkeeper.Upgradeable, "a")
	if _, err := w.Locks.Upgrade(t.Context(), g.ID, g.Token, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Locks.Extend(t.Context(), g.ID, g.Token, w.lock(lockkeeper.Write, "b")); err != nil {
		t.Fatal(err)
	}
	w.release(g)
	for path, kind := range map[string]lockkeeper.EventKind{"a": lockkeeper.EventUpgraded, "b": lockkeeper.EventExtended} {
		w.want(path, w.when(kind).Add(-earlier), coverage.Uncovered)
		w.want(path, w.when(kind), coverage.Covered)
		w.want(path, w.when(lockkeeper.EventReleased), coverage.Covered)
	}
}

// A revoked or expired grant covers changes up to its end.
func TestChangeIsCoveredHoweverTheGrantEnded(t *testing.T) {
	w := newWorkTree(t)
	write(t, filepath.Join(w.dir, "a"), "a")
	write(t, filepath.Join(w.dir, "b"), "b")
	g := w.ask(lockkeeper.Request{Holder: "otter"}, lockkeeper.Write, "a")
	if err := w.Locks.ForceRelease(t.Context(), g.ID, lockkeeper.Actor{Name: "Ada", Kind: lockkeeper.ActorPerson}, "for a test"); err != nil {
		t.Fatal(err)
	}
	w.want("a", w.when(lockkeeper.EventForceReleased), coverage.Covered)
	w.want("a", w.when(lockkeeper.EventForceReleased).Add(time.Millisecond), coverage.Uncovered)

	lapsing := w.ask(lockkeeper.Request{Holder: "otter", TTL: time.Millisecond}, lockkeeper.Write, "b")
	for e := new(lock.RequestInfo); e != nil; { // until its lease has expired; it is not freed
		var err error
		if e, err = w.Locks.Request(t.Context(), lapsing.ID); err != nil {
			t.Fatal(err)
		}
	}
	from := w.when(lockkeeper.EventAcquired)
	if c := w.change("b", from); c.State != coverage.Covered || c.GrantID != lapsing.ID || c.HeldUntil != nil {
		t.Errorf("under a lapsed grant: %+v", c)
	}
	w.want("b", from.Add(-20*time.Millisecond), coverage.Uncovered)
	if _, err := w.Locks.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want("b", w.when(lockkeeper.EventExpired), coverage.Covered)
	w.want("b", w.when(lockkeeper.EventExpired).Add(time.Millisecond), coverage.Uncovered)
}

// If the log was truncated, changes before it are uncovered and marked as such.
func TestChangeBeforeTheLog(t *testing.T) {
	w := newWorkTree(t)
	write(t, filepath.Join(w.dir, "a"), "a")
	write(t, filepath.Join(w.dir, "b"), "b")
	g := w.hold(lockkeeper.Write, "a")
	from := w.when(lockkeeper.EventAcquired)
	w.release(w.hold(lockkeeper.Write, "z"))
	w.release(g)
	until := w.when(lockkeeper.EventReleased)
	w.want("a", until, coverage.Covered)
	w.want("b", from, coverage.Uncovered)

	st, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(w.dir, w.Config.Store), w.Space, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := st.Update(t.Context(), func(tx store.Tx) error { return tx.Prune(time.Time{}, 1) }); err != nil {
		t.Fatal(err)
	}
	for path, modified := range map[string]time.Time{"a": until, "b": from} {
		if c := w.change(path, modified); c.State != coverage.Uncovered || !c.BeforeLog {
			t.Errorf("%s: %+v", path, c)
		}
	}
	w.want("b", until.Add(time.Hour), coverage.Uncovered) // the log covers this time completely
}

// A deletion has the time of the nearest existing parent directory, or of the file or link in its
// place.
func TestDeletionHasTheTimeOfItsDirectory(t *testing.T) {
	w := newWorkTree(t)
	write(t, filepath.Join(w.dir, "app/models/a.rb"), "a")
	write(t, filepath.Join(w.dir, "lib/deep/b.rb"), "b")
	w.git("add", ".")
	w.git("commit", "-qm", "first")
	g := w.hold(lockkeeper.Write, "app/models/a.rb")
	for _, path := range []string{"app/models", "lib"} {
		if err := os.RemoveAll(filepath.Join(w.dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(w.dir, "lib")); err != nil {
		t.Fatal(err)
	}
	w.release(g)
	until := w.when(lockkeeper.EventReleased)
	for modified, state := range map[time.Time]string{until: coverage.Covered, until.Add(time.Second): coverage.Uncovered} {
		if err := os.Chtimes(filepath.Join(w.dir, "app"), modified, modified); err != nil {
			t.Fatal(err)
		}
		if c := w.find("app/models/a.rb"); c.State != state || !c.Modified.Equal(modified) {
			t.Errorf("directory of %s: %+v", modified, c)
		}
	}
	if c := w.find("lib/deep/b.rb"); c.State != coverage.Uncovered {
		t.Errorf("behind a link: %+v", c)
	}
}
