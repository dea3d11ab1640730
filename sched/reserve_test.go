package sched_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/sched"
)

// What was under way before keeps its locks while it waits for a slot: nothing new gets
// between it and its landing.
//
// shows: PL-85 SW-74
func TestReserveBegun(t *testing.T) {
	for _, reserved := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			limits := sched.DefaultLimits()
			limits.Tests = 2
			y := newYard(t, sched.Options{Limits: limits})
			here := lockkeeper.Worker{ID: "w", Node: "here", Roots: []string{"flow"}, Only: true}
			must(t, y.store.Update(t.Context(), func(tx lockkeeper.Tx) error {
				known := here
				known.Expires = tx.Now().Lease.Add(time.Hour)
				return tx.PutWorker(known)
			}))
			enqueue := func(name, phase string, pools []string, path string) {
				y.enqueue(sched.Order{Workflow: name, Phase: phase, Pools: pools, Locks: writes(path), Root: "flow"})
			}
			queue := y.queue
			started := func() (names []string, jobs []*sched.Job) {
				for {
					job, err := queue.Claim(t.Context(), here)
					must(t, err)
					if job == nil {
						return names, jobs
					}
					names, jobs = append(names, job.Item.Workflow), append(jobs, job)
				}
			}
			enqueue("one", "test", []string{sched.PoolTest}, "a")
			enqueue("two", "test", []string{sched.PoolTest}, "b")
			_, jobs := started()
			for _, job := range jobs {
				must(t, job.Return(t.Context(), "the run was stopped"))
			}
			enqueue("new", "apply", nil, "b")

			limits.Tests = 1
			var err error
			queue, err = sched.New(y.store, y.locks, sched.Options{Limits: limits})
			must(t, err)
			want := [][]string{{"one"}, {"two"}, {"new"}}
			if !reserved {
				want = [][]string{{"one", "new"}, {"two"}, nil}
			} else {
				must(t, queue.ReserveBegun(t.Context(), "flow"), queue.ReserveBegun(t.Context(), "flow"))
			}
			for _, want := range want {
				names, jobs := started()
				if !slices.Equal(names, want) {
					t.Errorf("reserved %v: %v started, want %v", reserved, names, want)
				}
				for _, job := range jobs {
					y.finish(job, nil)
				}
			}
		})
	}
}

// What a person has to start is in the error state at once, and says why.
func TestOrderForAPerson(t *testing.T) {
	y := newYard(t, sched.Options{})
	it := y.enqueue(sched.Order{Workflow: "follow-up", Locks: writes("a"), Person: "more files are needed"})
	if it = y.item(it.ID); it.Status != lockkeeper.ItemError || it.Failure == nil || it.Failure.Reason != "it waits for a person: more files are needed" {
		t.Fatalf("%+v", it)
	}
	if job := y.claim(); job != nil {
		t.Errorf("%s was started", job.Item.ID)
	}
}
