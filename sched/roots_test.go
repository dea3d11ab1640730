package sched_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/sched"
	"lockkeeper/store/storetest"
)

// rooted starts a worker that runs only items of a root and never ticks again.
func (y *yard) rooted(root string, slots int, run func(context.Context, *sched.Job) error) *sched.Worker {
	y.t.Helper()
	w, err := y.queue.Start(y.t.Context(), sched.WorkerOptions{Slots: slots, Node: root, Roots: []string{root}, Only: true, TickEvery: 1000 * time.Hour, Run: run})
	must(y.t, err)
	synctest.Wait() // the worker is registered
	return w
}

// Items of a root without a worker wait for the same slots and files as those of another root. They
// keep none of these waiting.
//
// shows: GP-14 SW-59
func TestOtherRootsKeepNothingWaiting(t *testing.T) {
	for name, o := range map[string]sched.ItemSpec{
		"a pool": {Pools: []string{sched.PoolAgent}},
		"a file": {Locks: writes("f")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t, sched.Options{Limits: agents(2)})
				of := func(root string) (items []*lockkeeper.Item) {
					for range 6 {
						o := o
						o.Workflow, o.Root, o.Phase = root, root, "apply"
						items = append(items, y.enqueue(o))
					}
					return items
				}
				first := y.rooted("first", 9, takes(time.Hour))
				of("first")
				synctest.Wait() // two or one run, and the others wait
				second := y.rooted("second", 9, takes(time.Minute))
				ours := of("second")
				synctest.Wait()
				must(t, first.Close())
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				for _, it := range ours {
					if now := y.item(it.ID); now.Status != lockkeeper.ItemCompleted {
						t.Errorf("%s is %s and waits on %q, while nothing runs", it.ID, now.Status, now.WaitsOn)
					}
				}
				must(t, second.Close())
			})
		})
	}
}

// Under random load, with workers that come, go, pause and resume, ready work and a free slot never
// exist together once the workers have seen the last change.
//
// shows: GP-14 SW-59
func TestNothingStandsStill(t *testing.T) {
	first := rand.Uint64()
	for seed := first; seed < first+20*uint64(storetest.Torture()); seed++ {
		synctest.Test(t, func(t *testing.T) { randomRoots(t, seed) })
	}
}

func randomRoots(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	y := newYard(t, sched.Options{Limits: agents(3), LockTimeout: 1000 * time.Hour, EscalateAfter: 1000 * time.Hour})
	roots := []string{"", "a", "b"}
	var workers []*sched.Worker
	var names []string
	for step := range 200 {
		switch n := rnd.IntN(10); {
		case n < 4:
			o := sched.ItemSpec{Workflow: fmt.Sprint("item ", step), Root: "", Phase: []string{"apply", "analyze", "verify"}[rnd.IntN(3)], Estimate: time.Duration(rnd.IntN(600)) * time.Second}
			if len(names) > 0 && rnd.IntN(4) == 0 {
				o.After = []string{names[rnd.IntN(len(names))]}
			}
			if rnd.IntN(3) > 0 {
				o.Pools = []string{sched.PoolAgent}
			}
			for range rnd.IntN(3) {
				o.Locks = append(o.Locks, locked(lockkeeper.Mode(1+2*rnd.IntN(2)), []string{fmt.Sprint("f", rnd.IntN(4))})...)
			}
			o.Key, o.Root = o.Workflow, roots[rnd.IntN(3)]
			if _, err := y.queue.Enqueue(t.Context(), o); err == nil { // no worker may reach the root
				names = append(names, o.Key)
			}
		case n < 5 && len(workers) < 4:
			root := roots[1+rnd.IntN(2)]
			w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1 + rnd.IntN(6), Node: "here", Roots: []string{root}, Only: rnd.IntN(2) == 0,
				TickEvery: 1000 * time.Hour, Ahead: rnd.IntN(2) == 0, Run: inThreeParts(time.Duration(1+rnd.IntN(10)) * time.Minute)})
			must(t, err)
			workers = append(workers, w)
		case n < 6 && len(workers) > 0:
			i := rnd.IntN(len(workers))
			must(t, workers[i].Close())
			workers = slices.Delete(workers, i, i+1)
		case n < 7 && len(workers) > 0:
			workers[rnd.IntN(len(workers))].Pause()
		case n < 8 && len(workers) > 0:
			workers[rnd.IntN(len(workers))].Resume()
		default:
			time.Sleep(time.Duration(rnd.IntN(300)) * time.Second)
		}
		synctest.Wait()
		still, err := y.queue.Stalled(t.Context())
		must(t, err)
		for _, it := range still {
			t.Fatalf("seed %d, step %d: %s of root %q could start, and waits on %q", seed, step, it.ID, it.Root, it.WaitsOn)
		}
	}
	for _, w := range workers {
		must(t, w.Close())
	}
}
