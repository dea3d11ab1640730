package gate_test

import (
	"fmt"
	"maps"
	"os"
	"testing"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/store/storetest"
)

// Landings run while another program moves directories away and back. Each landing is in the
// tree wholly or not at all, and its content is not lost.
func TestMovedDirectories(t *testing.T) {
	rounds := storetest.Times(400, 10_000)
	inMemory(t)
	paths := []string{"test/a/f", "test/a/sub/f", "test/b/f", "test/c/f", "test/c/new"}
	w := newWorld(t, map[string]string{"test/a/f": "0", "test/a/sub/f": "0", "test/b/f": "0", "test/c/f": "0"}, gate.Options{})
	calm := func(act func()) { act() }
	for _, dir := range []string{"a", "b", "c"} { // a file takes the place of the directory while it is away
		must(t, os.MkdirAll(w.in("lib"), 0o755), os.WriteFile(w.in("lib/"+dir), nil, 0o644))
		outer, still := calm, keepSwapping(t, w.in("test/"+dir), w.in("lib/"+dir))
		calm = func(act func()) { outer(func() { still(act) }) }
	}
	was := map[string]string{}
	calm(func() { was = w.files() })
	refused := 0
	for n := range rounds {
		content := fmt.Sprint(n + 1)
		var changes []gate.Change
		want := maps.Clone(was)
		for i, path := range paths {
			if (n+i)%5 == 0 {
				changes = append(changes, gate.Delete(path))
				delete(want, path)
				continue
			}
			changes = append(changes, gate.Put(path, []byte(content)))
			want[path] = content
		}
		g := w.hold("otter", paths...)
		_, err := w.gate.Commit(t.Context(), &g.Grant, changes)
		if code := lockkeeper.CodeOf(err); err != nil && code != lockkeeper.CodeViolation && code != lockkeeper.CodeInput {
			t.Fatalf("round %d: %v", n, err)
		}
		if err != nil {
			want = was
			refused++
		}
		now := map[string]string{}
		calm(func() { now = w.files() })
		if !maps.Equal(now, want) {
			t.Fatalf("round %d: error %v, but the tree is %v, want %v", n, err, now, want)
		}
		w.releases(g)
		calm(func() { w.nothingLost(changes) })
		for _, e := range listed(w) {
			must(t, w.gate.Rescue().Drop(e))
		}
		was = now
		if t.Failed() {
			t.FailNow()
		}
	}
	w.noStages()
	t.Logf("%d of %d rounds were refused", refused, rounds)
	if refused == 0 || refused == rounds {
		t.Errorf("%d of %d rounds were refused: no landing ran during a move", refused, rounds)
	}
}

// listed returns the ids of everything on the shelf.
func listed(w *world) (ids []string) {
	list, err := w.gate.Rescue().List(w.t.Context())
	must(w.t, err)
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids
}

// crashed returns a crashed landing that has changed test/a/f but not test/b/f. An edit
// prevents its completion.
func crashed(t *testing.T) (*world, *lockkeeper.Landing) {
	w := newWorld(t, map[string]string{"test/a/f": "old", "test/b/f": "old"}, gate.Options{})
	l := w.abandon(1, gate.Put("test/a/f", []byte("new")), gate.Put("test/b/f", []byte("new")))
	w.want(map[string]string{"test/a/f": "new", "test/b/f": "old"})
	w.plant(map[string]string{"test/b/f": "theirs"})
	w.open(gate.Options{})
	return w, l
}

// After a crash the writer's open directories are lost. Recovery follows a directory
// that was moved inside the tree, even if another one is in its place.
func TestRecoveryFollowsADirectory(t *testing.T) {
	for name, instead := range map[string]func(w *world){
		"nothing instead":        func(*world) {},
		"a directory instead":    func(w *world) { must(w.t, os.Mkdir(w.in("test/a"), 0o755)) },
		"another file in there":  func(w *world) { w.plant(map[string]string{"test/a/f": "another"}) },
		"a link that leads away": func(w *world) { must(w.t, os.Symlink(w.t.TempDir(), w.in("test/a"))) },
	} {
		t.Run(name, func(t *testing.T) {
			w, l := crashed(t)
			must(t, os.MkdirAll(w.in("lib/deep"), 0o755), os.Rename(w.in("test/a"), w.in("lib/deep/moved")))
			instead(w)
			must(t, w.gate.RecoverLandings(t.Context(), l.GrantID))
			got, err := w.gate.Landing(t.Context(), l.Seq)
			must(t, err)
			if content, err := os.ReadFile(w.in("lib/deep/moved/f")); got.State != lockkeeper.Undone || string(content) != "old" {
				t.Errorf("the landing is %s, and the moved directory holds %q, %v", got.State, content, err)
			}
			if name == "another file in there" && w.files()["test/a/f"] != "another" {
				t.Errorf("the other file holds %q", w.files()["test/a/f"])
			}
			w.noStages()
		})
	}
}

// While a directory is out of the tree, its landing is not marked undone. Recovery reports the
// missing directory, and ends the landing when the directory is back.
func TestRecoveryWaitsForADirectory(t *testing.T) {
	w, l := crashed(t)
	away := t.TempDir() + "/a"
	must(t, os.Rename(w.in("test/a"), away))
	for range 2 {
		r, err := w.gate.Recover(t.Context())
		if err == nil || len(r.Waiting) != 1 || r.Waiting[0] != l.Seq {
			t.Fatalf("recovery: %+v, %v", r, err)
		}
	}
	if open, err := w.gate.Unfinished(t.Context()); err != nil || len(open) != 1 || open[0].Seq != l.Seq {
		t.Errorf("unfinished: %v, %v", open, err)
	}
	must(t, os.Rename(away, w.in("test/a")))
	if r, err := w.gate.Recover(t.Context()); err != nil || len(r.Undone) != 1 {
		t.Fatalf("recovery: %+v, %v", r, err)
	}
	w.want(map[string]string{"test/a/f": "old", "test/b/f": "theirs"})
	w.noStages()
	if open, err := w.gate.Unfinished(t.Context()); err != nil || len(open) > 0 {
		t.Errorf("unfinished: %v, %v", open, err)
	}
}

// If a person abandons a landing whose directory will not come back, the original is kept.
func TestAbandonedDirectory(t *testing.T) {
	w, l := crashed(t)
	must(t, os.Rename(w.in("test/a"), t.TempDir()+"/a"))
	person := lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}
	_, err := w.gate.Abandon(t.Context(), l.Seq, person, "it was deleted")
	must(t, err)
	got, err := w.gate.Landing(t.Context(), l.Seq)
	must(t, err)
	if kept := w.onShelf(); got.State != lockkeeper.Undone || len(kept["test/a/f"]) != 1 || kept["test/a/f"][0] != "old" || kept["test/b/f"][0] != "new" {
		t.Errorf("the landing is %s, on the shelf: %q", got.State, kept)
	}
	w.want(map[string]string{"test/b/f": "theirs"})
	w.noStages()
	must(t, w.gate.RecoverLandings(t.Context(), l.GrantID))
}
