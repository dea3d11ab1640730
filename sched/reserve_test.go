package sched_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// Work that had started before keeps its locks while it waits for a slot. No new item can
// change its files before it lands.
//
// shows: PL-85 SW-74
func TestReserveBegun(t *testing.T) {
	for _, reserved := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			limits := sched.DefaultLimits()
			limits.Tests = 2
			y := newYard(t, sched.Options{Limits: limits})
			here := y.reaching("flow")
			enqueue := func(name, phase string, pools []string, path string) {
				y.enqueue(sched.ItemSpec{Workflow: name, Phase: phase, Pools: pools, Locks: writes(path), Root: "flow"})
			}
			queue := y.queue
			started := func() (names []string, jobs []*sched.Job) {
				for {
					job, err := queue.Dispatch(t.Context(), here)
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
			queue, err = newQueue(y.store, y.locks, sched.Options{Limits: limits})
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

// reaching registers a worker that takes the items of a root.
func (y *yard) reaching(root string) lockkeeper.Worker {
	y.t.Helper()
	here := lockkeeper.Worker{ID: "w", Node: "here", Roots: []string{root}, Only: true}
	must(y.t, y.store.Update(y.t.Context(), func(tx store.Tx) error {
		known := here
		known.Expires = tx.Now().Lease.Add(time.Hour)
		return tx.PutWorker(known)
	}))
	return here
}

// lives maps process ids to their liveness.
type lives map[int]lockkeeper.Liveness

func (l lives) Liveness(p lockkeeper.Process) lockkeeper.Liveness            { return l[p.PID] }
func (lives) Exited(context.Context, lockkeeper.Process) <-chan struct{}     { return nil }
func (lives) EndLeftovers(context.Context, lockkeeper.Process, string) error { return nil }
func (lives) EndWork(context.Context, lockkeeper.Process, string) error      { return nil }

// If a process reserved the locks of started work and died, the next process takes over the
// reservation. No new request gets the locks in between.
//
// shows: PL-85 SW-74
func TestReservedByOneWhoDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		life := lives{1: lockkeeper.ProcessAlive, 2: lockkeeper.ProcessAlive}
		conductor := func(pid int) (*lock.Manager, *sched.Queue) {
			locks := lock.New(y.store, lock.Options{Processes: life, Self: &lockkeeper.Process{PID: pid}})
			queue, err := newQueue(y.store, locks, sched.Options{})
			must(t, err)
			t.Cleanup(func() { must(t, locks.Close()) })
			return locks, queue
		}
		here := y.reaching("flow")
		y.enqueue(sched.ItemSpec{Workflow: "begun", Locks: writes("a"), Root: "flow"})
		begun, err := y.queue.Dispatch(t.Context(), here)
		must(t, err, begun.Return(t.Context(), "the run was stopped"))
		_, first := conductor(1)
		must(t, first.ReserveBegun(t.Context(), "flow"))
		life[1] = lockkeeper.ProcessDead
		locks, second := conductor(2)
		must(t, second.ReserveBegun(t.Context(), "flow"))
		if g, err := locks.TryAcquire(t.Context(), lockkeeper.Request{Holder: "new", Locks: writes("a")}); !lock.IsBlocked(err) {
			t.Errorf("%+v, %v", g, err)
		}
	})
}

// An item that a person must start is in the error state at once, with the reason.
func TestOrderForAPerson(t *testing.T) {
	y := newYard(t, sched.Options{})
	it := y.enqueue(sched.ItemSpec{Workflow: "follow-up", Locks: writes("a"), Person: "more files are needed"})
	if it = y.item(it.ID); it.Status != lockkeeper.ItemError || it.Failure == nil || it.Failure.Reason != "it waits for a person: more files are needed" {
		t.Fatalf("%+v", it)
	}
	if job := y.claim(); job != nil {
		t.Errorf("%s was started", job.Item.ID)
	}
}
