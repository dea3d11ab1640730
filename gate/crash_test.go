package gate_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/lock"
	"lockkeeper/store/storetest"
)

// An aftermath is a place after a crash, with the conditions that must hold there.
type aftermath struct {
	t      *testing.T
	place  place
	scene  scene
	grant  *lock.Grant
	told   bool   // the commit had reported success
	failed bool   // the disk had failed, so the landing may have been rolled back
	edited string // a path of the scene that a person edited after the crash, or empty
	aside  string // a path that may exist or not, or empty
}

const (
	theirs    = "a person's edit"
	leaseOver = 31 * time.Minute
)

// meddled edits two files after the crash as a person would: a file that the scene does not
// touch and, if onScene is set, one that it does.
func (a *aftermath) meddled(onScene bool, n int) {
	a.t.Helper()
	edit(a.t, a.place.Root, bystander, theirs)
	if onScene {
		a.edited = a.scene.changes[n%len(a.scene.changes)].Path
		edit(a.t, a.place.Root, a.edited, theirs)
	}
}

// recovered checks what must hold after recovery.
func (a *aftermath) recovered(w *world) {
	t := a.t
	t.Helper()
	w.noStages()
	tree := scan(t, a.place.Root, ".lockkeeper")
	if tree[bystander] != plain(theirs) {
		t.Errorf("the edit of an untouched file is lost: %q", tree[bystander])
	}
	except := []string{bystander, a.aside}
	if a.edited != "" {
		for dir := a.edited; dir != "test"; dir = filepath.Dir(dir) {
			except = append(except, dir)
		}
		if got := tree[a.edited]; !strings.HasSuffix(got, " "+theirs) && !shelved(w, a.edited) {
			t.Errorf("the edit of %s is lost: it holds %q, and the shelf does not have it", a.edited, got)
		}
	}
	state, decided := agreed(w, a.grant.ID, a.scene, except...)
	switch {
	case state == lockkeeper.Committed:
	case a.told:
		t.Errorf("the commit was done, and said so, and now the landing is %s", state)
	case decided && a.edited == "" && !a.failed:
		t.Error("a decided landing was rolled back without a conflict")
	}
}

// shelved reports whether the rescue shelf has the person's edit of a path.
func shelved(w *world, path string) bool {
	for _, content := range w.shelf()[path] {
		if content == theirs {
			return true
		}
	}
	return false
}

// clearUp recovers after a crash. Either it runs the recovery of a program start, or the next
// holder recovers after the lease expired.
func (a *aftermath) clearUp(byRecovery bool) {
	t := a.t
	t.Helper()
	w := a.place.visit(t)
	if byRecovery {
		if _, err := w.gate.Recover(t.Context()); err != nil {
			t.Errorf("recovery: %v", err)
		}
		a.recovered(w)
		if _, err := w.locks.Release(t.Context(), a.grant.ID, a.grant.Token); err != nil {
			t.Errorf("release: %v", err)
		}
	} else {
		must(t, a.place.pass(leaseOver))
		next := w.hold("heron", a.scene.paths()...)
		if _, err := w.gate.Recover(t.Context()); err != nil { // removes the stage of a landing that was never decided
			t.Errorf("recovery: %v", err)
		}
		a.recovered(w)
		w.releases(next)
	}
	if e, err := w.locks.Request(t.Context(), a.grant.ID); err != nil || e != nil {
		t.Errorf("the grant is still there: %v, %v", e, err)
	}
}

// crash makes a child die at some point of a commit. died is false if the child finished before
// that point.
func crash(t *testing.T, kind, name string, at errand) (a *aftermath, died bool) {
	t.Helper()
	s := scenes()[name]
	p, w := newPlace(t, kind, nil)
	plantScan(t, p.Root, s.old)
	a = &aftermath{t: t, place: p, scene: s, grant: w.hold("otter", s.paths()...)}
	at.Do, at.Scene = "commit", name
	return a, a.die(at)
}

// die runs an errand in a child and reports whether the child died.
func (a *aftermath) die(at errand) bool {
	t := a.t
	t.Helper()
	at.Grant, at.Token, at.Signal = a.grant.ID, a.grant.Token, syscall.SIGKILL
	c := start(t, a.place)
	c.ask(at)
	got, survived := c.answer()
	if survived && got.Error != "" && at.Fails == "" {
		t.Errorf("the commit failed: %s", got.Error)
	}
	c.kill()
	a.told, a.failed = survived && got.Error == "", at.Fails != ""
	return !survived
}

// sampled reports whether a run tests a step. A torture run tests every step.
func sampled(step, every int) bool {
	return storetest.Torture() > 1 || every <= 1 || step%every == every/2
}

// isFor reports whether a run tests a scene. A torture run tests every scene.
func isFor(name string, few ...string) bool {
	return storetest.Torture() > 1 || slices.Contains(few, name)
}

// apart returns the distance between the steps at which a writer is killed before its recovery
// is tested. A torture run tests about twenty steps, an ordinary run fewer.
func apart(steps, ordinary int) int {
	if storetest.Torture() > 1 {
		return max(1, steps/20)
	}
	return ordinary
}

// If a writer is killed at any point, recovery leaves the tree wholly old or wholly new. The
// rows of the landing say which, and no edit is lost.
//
// shows: SW-38 DL-49 GP-4 GP-31 LE-26
func TestKilledAtEveryStep(t *testing.T) {
	every := map[string]int{"create": 4, "deep": 6, "replace": 3, "delete": 3, "rename": 5, "mode": 4, "two": 4, "three": 5, "twenty": 17}
	for _, store := range []string{"SQLite", "PostgreSQL"} {
		for name := range scenes() {
			if store == "PostgreSQL" && !isFor(name, "deep", "delete", "two") {
				continue
			}
			t.Run(store+"/"+name, func(t *testing.T) {
				t.Parallel()
				stride := every[name]
				if store == "PostgreSQL" {
					stride *= 4
				}
				round := func(t *testing.T, variant int, at errand) (died bool) {
					a, died := crash(t, store, name, at)
					a.meddled(variant%2 == 1, variant/2)
					a.clearUp(variant%4 < 2)
					return died
				}
				for n, around := range []string{"before", "after"} {
					t.Run(around, func(t *testing.T) {
						if !round(t, n, errand{Step: -1, Around: around}) {
							t.Error("it was not killed")
						}
					})
				}
				for step, died := 0, true; died; step++ {
					if !sampled(step, stride) {
						continue
					}
					for variant := range 4 {
						if storetest.Torture() > 1 || variant == (step/stride)%4 {
							passed := t.Run(fmt.Sprint("step ", step, " variant ", variant), func(t *testing.T) {
								died = round(t, variant+4*step, errand{Step: step})
							})
							died = died && passed // stop at the first step that cannot be tested
						}
					}
				}
			})
		}
	}
}

// If a writer is killed while it rolls back a landing, recovery also leaves the tree wholly old
// or wholly new.
//
// shows: SW-38 DL-49 GP-31
func TestKilledWhileRollingBack(t *testing.T) {
	every := map[string]int{"two": 2, "three": 1, "deep": 4, "twenty": 13}
	for name, stride := range every {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for step, died := writerSteps(t, name)/2, true; died; step++ {
				if sampled(step, stride) {
					t.Run(fmt.Sprint("step ", step), func(t *testing.T) {
						var a *aftermath
						a, died = crash(t, "SQLite", name, errand{Step: step, Fails: durabletest.Move})
						a.meddled(false, step)
						a.clearUp(step/stride%2 == 0)
					})
				}
			}
		})
	}
}

// If a recovery is killed at any point, the next recovery completes it.
//
// shows: DL-49 GP-4 GP-31
func TestRecoveryKilledAtEveryStep(t *testing.T) {
	// Distances between the writer's and the recovery's steps in the ordinary run.
	every := map[string][2]int{"deep": {7, 5}, "replace": {4, 4}, "delete": {3, 4}, "twenty": {41, 31}}
	for name, stride := range every {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := writerSteps(t, name)
			for first := steps / 3; first <= steps; first += apart(steps, stride[0]) {
				for step, died := 0, true; died; step++ {
					if !sampled(step, stride[1]) {
						continue
					}
					t.Run(fmt.Sprint("writer at ", first, " recovery at ", step), func(t *testing.T) {
						a, _ := crash(t, "SQLite", name, errand{Step: first})
						a.meddled(step/stride[1]%2 == 1, step)
						c := start(t, a.place)
						c.ask(errand{Do: "recover", Step: step, Signal: syscall.SIGKILL})
						got, survived := c.answer()
						if survived && got.Error != "" {
							t.Errorf("recovery: %s", got.Error)
						}
						died = !survived
						c.kill()
						a.clearUp(step/stride[1]%4 < 2)
					})
				}
			}
		})
	}
}

// writerSteps returns the number of disk changes of a commit.
func writerSteps(t *testing.T, name string) int {
	t.Helper()
	s := scenes()[name]
	p, w := newPlace(t, "SQLite", nil)
	plantScan(t, p.Root, s.old)
	g := w.hold("otter", s.paths()...)
	c := start(t, p)
	c.ask(errand{Do: "commit", Scene: name, Grant: g.ID, Token: g.Token})
	got, ok := c.answer()
	if !ok || got.Error != "" {
		t.Fatalf("the commit failed: %s", got.Error)
	}
	if tree := scan(t, p.Root, ".lockkeeper"); !holds(tree, s.new) {
		t.Fatalf("the scene is not what it should be: %v", differences(s.new, tree))
	}
	return got.Steps
}
