package sched_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
	"lockkeeper/store/storetest"
)

// flaky is a store whose transactions fail at random, before they begin or after they commit.
type flaky struct {
	store.Store
	mu     sync.Mutex
	rnd    *rand.Rand
	chance float64 // probability of each of the two failures
}

var errFlaky = errors.New("the store fails")

func (f *flaky) fails() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rnd.Float64() < f.chance
}

func (f *flaky) set(chance float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chance = chance
}

func (f *flaky) Update(ctx context.Context, fn func(store.Tx) error) error {
	if f.fails() {
		return errFlaky
	}
	err := f.Store.Update(ctx, fn)
	if err == nil && f.fails() {
		return errFlaky
	}
	return err
}

// Whatever a failing store does with the workers' transactions, no conflicting items overlap.
// Once it works again, every item ends.
//
// shows: SW-53 SW-71 SW-74
func TestFlakyStore(t *testing.T) {
	for range 10 * storetest.Torture() {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { flakyRun(t, seed) }) })
	}
}

func flakyRun(t *testing.T, seed uint64) {
	f := &flaky{Store: memstore.New(space, memstore.Options{KeepEvents: 100_000}), rnd: rand.New(rand.NewPCG(seed, 1))}
	y := &yard{t: t, store: f, locks: lock.New(f, lock.Options{})}
	defer func() { must(t, y.locks.Close(), f.Close()) }()
	var err error
	y.queue, err = newQueue(f, y.locks, sched.Options{MaxAttempts: 1 << 20, Limits: sched.Limits{Agents: 3, API: 2, Tests: 1, Jobs: 6, CPU: 1, JobsPerProject: 3, MapsPerProject: 1}})
	must(t, err)
	c := &crowd{t: t, taken: map[string]int{}, runs: map[string]int{}}
	const items = 60
	for i := range items {
		y.enqueue(sched.ItemSpec{Workflow: fmt.Sprint("w", i), Locks: writes(fmt.Sprint("f", i%5)), Pools: []string{sched.PoolAgent}})
	}
	f.set(0.2)
	var workers []*sched.Worker
	for n := range 3 {
		for {
			w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 2, Node: fmt.Sprint("n", n), Run: func(ctx context.Context, job *sched.Job) error {
				it := job.Item
				c.mu.Lock()
				for _, other := range c.held {
					if conflict(&it, &other) {
						t.Errorf("%s and %s overlap", it.ID, other.ID)
					}
				}
				c.held = append(c.held, it)
				c.mu.Unlock()
				defer c.leave(it)
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				if n := len(it.Pools); n > 0 && len(it.ID)%2 == 0 {
					return job.Phase(ctx, "test", sched.PoolTest)
				}
				return nil
			}})
			if err == nil {
				workers = append(workers, w)
				break
			}
		}
	}
	for range 40 {
		time.Sleep(time.Minute)
		if t.Failed() {
			break
		}
	}
	f.set(0)
	for range 24 {
		time.Sleep(time.Hour)
		if y.depth() == 0 && len(y.active()) == 0 {
			break
		}
	}
	failed := 0
	for _, it := range y.all() {
		if it.Status == lockkeeper.ItemError { // its second phase failed
			failed++
			continue
		}
		if it.Status != lockkeeper.ItemCompleted {
			t.Errorf("%s is %s, stage %d, attempts %d, waiting on %q", it.ID, it.Status, it.Stage, it.Attempts, it.WaitsOn)
		}
	}
	t.Logf("%d failed", failed)
	for _, w := range workers {
		must(t, w.Close())
	}
	for _, pool := range []string{sched.PoolAgent, sched.PoolTest} {
		if n := y.taken(pool); n != 0 {
			t.Errorf("%d slots of %s are lost", n, pool)
		}
	}
}
