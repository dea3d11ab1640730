package sched_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/sched"
)

// Items of late phases come first. Within a rank, projects take turns, and the items of one
// project start in the order of their submission.
//
// shows: SW-31 PL-51 CF-23 CF-24 DL-62
func TestOrder(t *testing.T) {
	y := newYard(t, sched.Options{})
	for _, o := range []sched.ItemSpec{
		{Workflow: "a1", Phase: "apply", Project: "a"}, {Workflow: "a2", Phase: "apply", Project: "a"}, {Workflow: "a3", Phase: "apply", Project: "a"},
		{Workflow: "z1", Phase: "analyze"}, {Workflow: "b1", Phase: "apply", Project: "b"}, {Workflow: "b2", Phase: "merge", Project: "b"},
		{Workflow: "s1", Phase: "synthesize"}, {Workflow: "v1", Phase: "verify"}, {Workflow: "t1", Phase: "ci"}, {Workflow: "p1", Phase: "batch_plan"},
	} {
		y.enqueue(o)
	}
	got, _ := y.started()
	want := []string{"v1", "t1", "a1", "b1", "a2", "b2", "a3", "p1", "s1", "z1"}
	if !slices.Equal(got, want) {
		t.Errorf("dispatched %v, want %v", got, want)
	}
}

// An item whose locks or slots are taken is passed over, and examined again when they are free.
//
// shows: SW-10 SW-27 SW-59 PL-53 GP-11
func TestPassedOver(t *testing.T) {
	y := newYard(t, sched.Options{Limits: sched.Limits{Agents: 2, API: 1, Tests: 1, Jobs: 3, CPU: 1, JobsPerProject: 2, MapsPerProject: 1}})
	agent := []string{sched.PoolAgent}
	y.enqueue(sched.ItemSpec{Workflow: "first", Locks: writes("a", "b"), Pools: agent})
	y.enqueue(sched.ItemSpec{Workflow: "blocked", Locks: writes("b", "c"), Pools: agent})
	y.enqueue(sched.ItemSpec{Workflow: "free", Locks: writes("c"), Pools: agent})
	y.enqueue(sched.ItemSpec{Workflow: "no slot", Locks: writes("d"), Pools: agent})
	y.enqueue(sched.ItemSpec{Workflow: "needs none", Locks: writes("e")})
	got, jobs := y.started()
	if want := []string{"first", "free", "needs none"}; !slices.Equal(got, want) {
		t.Fatalf("dispatched %v, want %v", got, want)
	}
	y.finish(jobs[0], nil)
	if got, _ := y.started(); !slices.Equal(got, []string{"no slot"}) {
		t.Errorf("dispatched %v: the blocked one still needs c", got)
	}
	y.finish(jobs[1], nil)
	if got, _ := y.started(); !slices.Equal(got, []string{"blocked"}) {
		t.Errorf("dispatched %v", got)
	}
}

// shows: DL-5 DL-59 DL-60 DL-61 DL-63 CF-25
func TestCaps(t *testing.T) {
	y := newYard(t, sched.Options{Limits: sched.Limits{Agents: 9, API: 9, Tests: 1, Jobs: 4, CPU: 1, JobsPerProject: 3, MapsPerProject: 1}})
	for _, o := range []sched.ItemSpec{
		{Workflow: "m1", Project: "p", Map: true}, {Workflow: "m2", Project: "p", Map: true}, {Workflow: "c1", Project: "p", Class: "cpu"},
		{Workflow: "c2", Project: "q", Class: "cpu"}, {Workflow: "p3", Project: "p"}, {Workflow: "p4", Project: "p"}, {Workflow: "q1", Project: "q"}, {Workflow: "q2", Project: "q"},
	} {
		o.Job = true
		y.enqueue(o)
	}
	got, jobs := y.started()
	slices.Sort(got)
	if want := []string{"c2", "m1", "q1", "q2"}; !slices.Equal(got, want) {
		t.Errorf("dispatched %v, want %v", got, want)
	}
	for _, job := range jobs {
		y.finish(job, nil)
	}
	got, _ = y.started()
	slices.Sort(got)
	if want := []string{"c1", "m2", "p3"}; !slices.Equal(got, want) {
		t.Errorf("then %v, want %v", got, want)
	}
}

// An item with several phases keeps its grant from phase to phase and returns its slot in between. When it
// needs the slot of its next phase, it comes before all queued items, whatever their phase.
//
// shows: CF-13 CF-12
func TestLifecycle(t *testing.T) {
	y := newYard(t, sched.Options{Limits: sched.Limits{Agents: 1, API: 1, Tests: 1, Jobs: 1, CPU: 1, JobsPerProject: 1, MapsPerProject: 1}})
	agent := []string{sched.PoolAgent}
	y.enqueue(sched.ItemSpec{Workflow: "three", Phase: "verify", Locks: writes("c"), Pools: agent})
	y.enqueue(sched.ItemSpec{Workflow: "one", Phase: "verify", Locks: writes("a"), Pools: agent})
	y.enqueue(sched.ItemSpec{Workflow: "two", Phase: "verify", Locks: writes("b"), Pools: agent})
	three := y.claim()
	if three.Item.Workflow != "three" || y.claim() != nil {
		t.Fatal("one slot, and not the first in order")
	}
	grant, id := three.Grant.ID, three.Item.ID
	must(t, three.Phase(t.Context(), "test", sched.PoolTest))
	one := y.claim()
	if one == nil || one.Item.Workflow != "one" {
		t.Fatalf("the agent's slot was not released: %v", one)
	}
	done := make(chan error, 1)
	go func() { done <- three.Phase(t.Context(), "apply", sched.PoolAgent) }()
	waitFor(t, func() bool { return y.item(id).Stage == lockkeeper.StageWaiting })
	y.finish(one, nil)
	if y.claim() != nil {
		t.Fatal("an item overtook a running one")
	}
	must(t, <-done)
	if three.Grant.ID != grant || y.item(id).GrantID != grant {
		t.Error("the item changed its grant")
	}
	if y.claim() != nil {
		t.Error("an item overtook a running one")
	}
	y.finish(three, nil)
	if two := y.claim(); two == nil || two.Item.Workflow != "two" {
		t.Error("the slot was lost")
	}
}

// hung is how long a test waits for a state before it fails. It is reached only if something
// hangs.
const hung = 5 * time.Minute

// waitFor polls until another goroutine has reached a state.
func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	for began := time.Now(); !what(); time.Sleep(time.Millisecond) {
		if time.Since(began) > hung {
			t.Fatal("it never happened")
		}
	}
}

// Locks for one operation are released while their holder waits.
//
// shows: DL-65 DL-67 DL-68 CF-12
func TestOneOperation(t *testing.T) {
	y := newYard(t, sched.Options{})
	y.enqueue(sched.ItemSpec{Workflow: "map", Policy: "dal", Locks: writes("maps/m1")})
	job := y.claim()
	if err := job.Phase(t.Context(), "test", sched.PoolTest); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("it may enter another phase: %v", err)
	}
	y.finish(job, nil)
	y.hold("ada", writes("maps/m1"))
}

// Test runs are numbered across all workers, and their numbers are reused.
func TestSlotsOfTestRuns(t *testing.T) {
	y := newYard(t, sched.Options{Limits: sched.Limits{Agents: 1, API: 1, Tests: 3, Jobs: 9, CPU: 1, JobsPerProject: 9, MapsPerProject: 1}})
	for range 5 {
		y.enqueue(sched.ItemSpec{Workflow: "test", Pools: []string{sched.PoolTest}})
	}
	y.enqueue(sched.ItemSpec{Workflow: "other"})
	_, jobs := y.started()
	var got []int
	for _, job := range jobs {
		got = append(got, job.Item.Slot)
	}
	if want := []int{1, 2, 3, 0}; !slices.Equal(got, want) {
		t.Fatalf("slots %v, want %v", got, want)
	}
	y.finish(jobs[1], nil)
	if next := y.claim(); next == nil || next.Item.Slot != 2 || y.item(jobs[1].Item.ID).Slot != 0 {
		t.Errorf("the next one is %+v", next)
	}
}

// In a rank the item with the longest chain of work behind it starts first, also if what waits for
// it is queued later. A project gets at most a round of turns ahead of another.
//
// shows: SW-31 CF-24
func TestLongestChainFirst(t *testing.T) {
	y := newYard(t, sched.Options{})
	_, err := y.queue.Enqueue(t.Context(),
		sched.ItemSpec{Workflow: "long", Key: "long", Project: "a", Estimate: time.Hour},
		sched.ItemSpec{Workflow: "short", Key: "short", Project: "a", Estimate: time.Minute},
		sched.ItemSpec{Workflow: "after short", Project: "a", Estimate: 2 * time.Hour, After: []string{"short"}},
		sched.ItemSpec{Workflow: "behind", Key: "behind", Project: "b", Estimate: time.Second, Behind: 90 * time.Minute},
		sched.ItemSpec{Workflow: "late", Key: "late", Project: "b", Estimate: time.Second})
	must(t, err)
	y.enqueue(sched.ItemSpec{Workflow: "after late", Project: "b", Estimate: 3 * time.Hour, After: []string{"late"}})
	if got, _ := y.started(); !slices.Equal(got, []string{"late", "short", "behind", "long"}) {
		t.Errorf("dispatched %v", got)
	}
	for i := range 2*lockkeeper.TurnsInRound + 1 {
		y.enqueue(sched.ItemSpec{Workflow: fmt.Sprint("c", i), Project: "c", Estimate: time.Hour})
	}
	y.enqueue(sched.ItemSpec{Workflow: "small", Project: "d", Estimate: time.Minute})
	got, _ := y.started()
	if at := slices.Index(got, "small"); at < 1 || at >= lockkeeper.TurnsInRound {
		t.Errorf("an item of another project starts after %d with longer chains", at)
	}
}

// Chains count the writers of a file one after the other, and a reader lets those first that do not
// wait for it.
func TestChains(t *testing.T) {
	got := sched.Chains([]sched.Step{
		{Estimate: 1, Locks: reads("f"), After: nil},
		{Estimate: 2, Locks: writes("f"), After: []int{0}},
		{Estimate: 4, Locks: writes("f"), After: []int{1}},
		{Estimate: 8, Locks: writes("f", "g")},
		{Estimate: 16, Locks: reads("g"), Behind: 32},
	})
	// The writers of f run in the order of their earliest starts: 3, 1, 2.
	if want := []time.Duration{1 + 12 + 6, 2 + 4, 4, 8 + 6, 16 + 8 + 32}; !slices.Equal(got, want) {
		t.Errorf("chains %v, want %v", got, want)
	}
}
