package workspace

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A base that was kept is brought up to date by the next process, whatever people did meanwhile and
// whether the process before ended or was killed.
func TestKeptBase(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	root, dir := t.TempDir(), filepath.Join(t.TempDir(), "workspaces")
	people := &editor{t: t, rand: rand.New(rand.NewPCG(seed, 2)), root: root}
	for range 60 {
		people.step()
	}
	git(t, root, "init", "-q")
	o := Options{Root: root, Dir: dir, Keep: true}
	b := newBase(t, o)
	at := b.dir
	var left *Workspace // of an earlier process
	var had map[string]string
	for range 15 * torture() {
		for range people.rand.IntN(8) {
			people.step()
		}
		want := withoutPipes(contents(t, root, gitName))
		w := on(t, b)
		same(t, "a new workspace", contents(t, tree(t, w), gitName), want)
		wantChanges(t, w)
		if left != nil {
			again, err := Adopt(left.Home(), nil)
			must(t, err)
			same(t, "the workspace of an earlier process", contents(t, tree(t, again), gitName), had)
			must(t, again.Close(t.Context(), false))
			left = nil
		}
		if people.rand.IntN(2) == 0 {
			left, had = w, want
		}
		must(t, w.Close(t.Context(), left != nil))
		if people.rand.IntN(3) == 0 { // as if the process were killed
			unlock(b.lock)
			closeFD(b.lock)
			b.lock = -1
		} else {
			must(t, b.Close(t.Context()))
		}
		if b = newBase(t, o); b.dir != at {
			t.Fatalf("the base %s is used instead of %s", b.dir, at)
		}
	}
}

// A kept base is used only for the same codebase with the same options, and until the machine starts
// again. Otherwise it is removed. Of two bases one is kept.
func TestKeptBaseOfSomethingElse(t *testing.T) {
	root, dir := base(t), filepath.Join(t.TempDir(), "workspaces")
	o := Options{Root: root, Dir: dir, Keep: true}
	keep := func() string {
		b := newBase(t, o)
		must(t, errors.Join(b.Prepare(t.Context()), b.Close(t.Context())))
		return b.dir
	}
	rebooted := func(at string) {
		name := filepath.Join(at, keptName)
		var k kept
		text, err := os.ReadFile(name)
		must(t, errors.Join(err, json.Unmarshal(text, &k)))
		k.Boot = "another"
		text, err = json.Marshal(k)
		must(t, errors.Join(err, os.WriteFile(name, text, 0o600)))
	}
	for name, change := range map[string]func(at string){
		"other options": func(string) { o.Without = append(o.Without, "dir") },
		"another start": rebooted,
		"a lost layer":  func(at string) { must(t, os.RemoveAll(filepath.Join(at, "0"))) },
	} {
		at := keep()
		if again := keep(); again != at {
			t.Errorf("%s: before, %s was used instead of %s", name, again, at)
		}
		change(at)
		b := newBase(t, o)
		must(t, b.Prepare(t.Context()))
		if _, err := os.Stat(at); b.dir == at || err == nil {
			t.Errorf("%s: %s was used or is still there (%v)", name, at, err)
		}
		w := on(t, b)
		same(t, name, contents(t, tree(t, w)), contents(t, root, o.Without...))
		must(t, errors.Join(w.Close(t.Context(), false), b.Close(t.Context())))
	}
	one, other := newBase(t, o), newBase(t, o)
	must(t, errors.Join(one.Prepare(t.Context()), other.Prepare(t.Context())))
	must(t, errors.Join(other.Close(t.Context()), one.Close(t.Context())))
	left, err := filepath.Glob(filepath.Join(dir, baseName+"*"))
	must(t, err)
	if len(left) != 1 || left[0] != one.dir {
		t.Errorf("%q are left", left)
	}
}
