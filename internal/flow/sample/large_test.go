package sample

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"lockkeeper/internal/flow"
)

func written(t testing.TB, l Large) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "large")
	if err := l.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A large application passes its checks, its batches apply in any order, and Lost finds lost
// changes.
func TestLarge(t *testing.T) {
	for _, seed := range orders(2) {
		l := Large{Controllers: 8, Seed: seed}
		dir := written(t, l)
		if !maps.Equal(tree(t, dir), tree(t, written(t, l))) {
			t.Errorf("seed %d: it differs from itself", seed)
		}
		script, err := l.Script()
		s := newStage(t, dir, script, err)
		s.rightNow()
		type job struct {
			unit flow.FoundUnit
			flow.Batch
		}
		var jobs []job
		changes, writers := 0, map[string]int{}
		for _, c := range controllers(t, dir) {
			p, _, _ := s.plan(c.Name)
			for _, b := range p.Batches {
				jobs = append(jobs, job{c, b})
				changes += len(b.WriteTargets)
				for _, path := range b.WriteTargets {
					writers[path]++
				}
			}
		}
		if lost, err := l.Lost(dir); err != nil || len(lost) != changes {
			t.Errorf("%d changes, and %d are still to be made, %v", changes, len(lost), err)
		}
		if most := slices.Max(slices.Collect(maps.Values(writers))); len(jobs) < 8 || most < 2 {
			t.Errorf("seed %d: %d batches, and no more than %d meet", seed, len(jobs), most)
		}
		chance := rand.New(rand.NewPCG(seed, 1))
		for len(jobs) > 0 {
			j := draw(chance, &jobs, func(job) bool { return true })
			if r := s.work("apply", j.unit.Name+"/"+j.ID, j.Batch, Test+" "+j.unit.Test); r != (ran{}) {
				t.Errorf("%s/%s: %v", j.unit.Name, j.ID, r)
			}
		}
		if lost, err := l.Lost(dir); err != nil || len(lost) > 0 {
			t.Errorf("lost: %v, %v", lost, err)
		}
		s.rightNow()
	}
	if fmt.Sprint(tree(t, written(t, Large{Controllers: 8, Seed: 1}))) == fmt.Sprint(tree(t, written(t, Large{Controllers: 8, Seed: 2}))) {
		t.Error("the seed changes nothing")
	}
}
