package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/machinetest"
)

// newBase opens a base that the test closes. It skips the test in a process that cannot attach
// mounts.
func newBase(t *testing.T, o Options) *Base {
	t.Helper()
	if os.Getenv(onLayers) == "" {
		t.Skip("TestOnLayers runs this")
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "workspaces")
	}
	b, err := NewBase(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close(context.Background())) })
	return b
}

// on makes a workspace on a base and closes it at the end of the test.
func on(t *testing.T, b *Base, fresh ...string) *Workspace {
	t.Helper()
	w, err := b.Make(t.Context(), fresh)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close(context.Background(), false)) })
	return w
}

// A workspace has the tree as it is when it is made, whatever people do, and keeps it.
func TestBaseFollowsPeople(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	root := t.TempDir()
	people := &editor{t: t, rand: rand.New(rand.NewPCG(seed, 2)), root: root}
	for range 60 {
		people.step()
	}
	git(t, root, "init", "-q")
	b := newBase(t, Options{Root: root})
	var before *Workspace
	var had map[string]string
	for range 15 * torture() {
		for range people.rand.IntN(8) {
			people.step()
		}
		want := withoutPipes(contents(t, root, gitName))
		w := on(t, b)
		same(t, "a new workspace", contents(t, tree(t, w), gitName), want)
		wantChanges(t, w)
		if before != nil {
			same(t, "the workspace before it", contents(t, tree(t, before), gitName), had)
			must(t, before.Close(t.Context(), false))
		}
		before, had = w, want
	}
}

// Landings are in the next workspace, and in an earlier one after CatchUp.
func TestBaseFollowsLandings(t *testing.T) {
	root := newRepository(t)
	l := &landings{t: t, root: root, paths: map[uint64][]string{}}
	b := newBase(t, Options{Root: root, Landed: l.after})
	first := on(t, b)
	l.land("landed", "app/models/user.rb", "app/new/deep.rb")
	second := on(t, b)
	if got := read(t, tree(t, second), "app/new/deep.rb"); !strings.HasPrefix(got, "landed") || second.Seq() != 1 || first.Seq() != 0 {
		t.Errorf("%q, %d, %d", got, first.Seq(), second.Seq())
	}
	if _, err := os.Lstat(filepath.Join(tree(t, first), "app/new")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a workspace changed by itself")
	}
	moved, conflicts, err := first.CatchUp(t.Context())
	if err != nil || len(moved) != 2 || len(conflicts) > 0 {
		t.Errorf("%v, %v, %v", moved, conflicts, err)
	}
	same(t, "after CatchUp", contents(t, tree(t, first), gitName), contents(t, root, gitName, stateDir))
	wantChanges(t, first)
}

// Commits, adds and branches of the shared repository are in the next workspace.
func TestBaseFollowsRepositories(t *testing.T) {
	root := newRepository(t)
	nested := filepath.Join(root, "lib/nested")
	plant(t, nested, map[string]string{"a": "1"})
	git(t, nested, "init", "-q", "-b", "main")
	git(t, nested, "add", ".")
	git(t, nested, "commit", "-q", "-m", "first")
	b := newBase(t, Options{Root: root})
	on(t, b)
	for i, act := range []func(){
		func() { git(t, root, "commit", "-q", "-am", "second") },
		func() { git(t, root, "branch", "later") },
		func() { git(t, root, "pack-refs", "--all") },
		func() { git(t, root, "checkout", "-q", "-b", "other2") },
		func() { git(t, root, "add", "new.rb") },
		func() { write(t, nested, "a", "2"); git(t, nested, "commit", "-q", "-am", "nested") },
	} {
		act()
		w := on(t, b)
		for _, dir := range []string{".", "lib/nested"} {
			for _, command := range [][]string{{"status", "--porcelain=v2", "--branch"}, {"for-each-ref"}} {
				want := git(t, filepath.Join(root, dir), command...)
				if got := git(t, filepath.Join(tree(t, w), dir), command...); got != want {
					t.Errorf("act %d, git %v in %s:\n%s\nand should be\n%s", i, command, dir, got, want)
				}
			}
		}
		if want := strings.TrimSpace(git(t, root, "rev-parse", "HEAD")); w.Commit() != want {
			t.Errorf("act %d: the commit is %s, not %s", i, w.Commit(), want)
		}
	}
}

// Many layers become one, and workspaces on the old ones stay as they are.
func TestBaseFolds(t *testing.T) {
	root := base(t)
	b := newBase(t, Options{Root: root})
	first := on(t, b)
	had := contents(t, tree(t, first))
	most := 0
	for i := range 2*mostLayers + 20 {
		write(t, root, fmt.Sprintf("new/%d", i%7), fmt.Sprint(i))
		must(t, b.Prepare(t.Context()))
		most = max(most, len(b.now.dirs))
	}
	if most != mostLayers || len(b.now.dirs) > 40 {
		t.Errorf("there were up to %d layers, and are %d", most, len(b.now.dirs))
	}
	if left, err := os.ReadDir(b.dir); err != nil || len(left) > len(b.now.dirs)+mostLayers {
		t.Errorf("%d layers are left, %v", len(left), err)
	}
	same(t, "after folding", contents(t, tree(t, on(t, b))), contents(t, root))
	same(t, "the first workspace", contents(t, tree(t, first)), had)
}

// A kept workspace keeps its base, in the next process, too. Without one the base is removed.
func TestBaseStaysForKeptWork(t *testing.T) {
	root, dir := base(t), filepath.Join(t.TempDir(), "workspaces")
	b := newBase(t, Options{Root: root, Dir: dir})
	must(t, on(t, b).Close(t.Context(), false))
	write(t, root, "later.rb", "2")
	w := on(t, b)
	write(t, tree(t, w), "a.rb", "mine")
	must(t, os.Remove(filepath.Join(tree(t, w), "dir/x.rb")))
	must(t, w.Close(t.Context(), true))
	must(t, b.Close(t.Context()))
	bases := func() int {
		found, err := filepath.Glob(filepath.Join(dir, baseName+"*"))
		must(t, err)
		return len(found)
	}
	next := newBase(t, Options{Root: root, Dir: dir})
	if bases() != 2 {
		t.Errorf("there are %d bases", bases())
	}
	again, err := Adopt(w.Home(), nil)
	must(t, err)
	wantChanges(t, again, "modified a.rb", "deleted dir/x.rb")
	if got := read(t, tree(t, again), "later.rb"); got != "2" {
		t.Errorf("read %q", got)
	}
	takeAll(t, again)
	same(t, "after TakeOut", contents(t, tree(t, again)), contents(t, root))
	must(t, again.Close(t.Context(), false))
	must(t, next.Close(t.Context()))
	if bases() != 0 {
		t.Errorf("there are %d bases", bases())
	}
}

// A disk without room is named, and nothing is left on it.
func TestBaseWithoutRoom(t *testing.T) {
	root, disk := base(t), t.TempDir()
	write(t, root, "large", strings.Repeat("0123456789abcdef", 1<<16))
	machinetest.Mount(t, "tmpfs", disk, "tmpfs", 0, "size=512k")
	b := newBase(t, Options{Root: root, Dir: filepath.Join(disk, "workspaces")})
	err := b.Prepare(t.Context())
	if err == nil || !strings.Contains(err.Error(), "too little room for a copy of "+root) || !strings.Contains(lockkeeper.NextStep(err), "free some space") {
		t.Errorf("%v", err)
	}
	must(t, os.Remove(filepath.Join(root, "large")))
	must(t, b.Prepare(t.Context()))
	same(t, "a workspace", contents(t, tree(t, on(t, b))), contents(t, root))
}

// The agent removes a file and a directory that came with a landing after its workspace was made.
func TestBaseLandedFileIsRemoved(t *testing.T) {
	root := newRepository(t)
	l := &landings{t: t, root: root, paths: map[uint64][]string{}}
	w := on(t, newBase(t, Options{Root: root, Landed: l.after}))
	l.land("landed", "app/new.rb", "app/deep/er/new.rb", "app/models/user.rb")
	_, _, err := w.CatchUp(t.Context())
	must(t, err)
	sh(t, w, "rm -r app/new.rb app/deep app/models/user.rb")
	wantChanges(t, w, "deleted app/deep/er/new.rb", "deleted app/models/user.rb", "deleted app/new.rb")
	must(t, w.Close(t.Context(), true))
	again, err := Adopt(w.Home(), nil)
	must(t, err)
	wantChanges(t, again, "deleted app/deep/er/new.rb", "deleted app/models/user.rb", "deleted app/new.rb")
	takeAll(t, again)
	same(t, "restored", contents(t, tree(t, again), gitName), contents(t, root, gitName, stateDir))
	must(t, again.Close(t.Context(), false))
}
