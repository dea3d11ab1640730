package sched_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/store/storetest"
)

// A crowd is a queue that several managers use at once, as several processes would.
type crowd struct {
	t     *testing.T
	yards []*yard

	mu    sync.Mutex
	held  []lockkeeper.Item // running items, as reported by their workers
	taken map[string]int
	limit sched.Limits
	runs  map[string]int
	known []string
}

// enter records that an item runs, and reports an error if it must not.
func (c *crowd) enter(it lockkeeper.Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[it.ID]++
	for _, other := range c.held {
		if conflict(&it, &other) || it.ID == other.ID {
			c.t.Errorf("%s and %s overlap", it.ID, other.ID)
		}
	}
	for _, pool := range slices.Concat(it.Caps, it.Pools) {
		c.taken[pool]++
		if limit, _ := c.limit.Of(pool); c.taken[pool] > limit {
			c.t.Errorf("pool %s: %d of %d", pool, c.taken[pool], limit)
		}
	}
	c.held = append(c.held, it)
}

func (c *crowd) leave(it lockkeeper.Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pool := range slices.Concat(it.Caps, it.Pools) {
		c.taken[pool]--
	}
	c.held = slices.DeleteFunc(c.held, func(o lockkeeper.Item) bool { return o.ID == it.ID })
}

func (c *crowd) order(i int) sched.ItemSpec {
	o := sched.ItemSpec{Workflow: fmt.Sprint("w", i), Phase: []string{"analyze", "apply", "verify"}[rand.IntN(3)], Project: []string{"a", "b"}[rand.IntN(2)], Job: rand.IntN(2) == 0, By: ada}
	for range rand.IntN(3) {
		path := fmt.Sprint("f", rand.IntN(6))
		switch rand.IntN(3) {
		case 0:
			o.Locks = append(o.Locks, reads(path)...)
		case 1:
			o.Locks = append(o.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: "d", Kind: lockkeeper.Dir}, Mode: lockkeeper.Read})
		default:
			o.Locks = append(o.Locks, writes([]string{path, "d/" + path}[rand.IntN(2)])...)
		}
	}
	switch rand.IntN(4) {
	case 0:
		o.Pools = []string{sched.PoolTest}
	case 1:
		o.Class = "cpu"
	case 2:
		o.Map = true
	}
	return o
}

// run does the work of an item. Some items have a second phase, some fail, some are slow.
func (c *crowd) run(ctx context.Context, job *sched.Job) error {
	it := job.Item
	c.enter(it)
	time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
	c.leave(it)
	if rand.IntN(4) == 0 {
		wait, cancel := ctx, context.CancelFunc(func() {})
		if rand.IntN(3) == 0 {
			wait, cancel = context.WithTimeout(ctx, time.Millisecond)
		}
		err := job.Phase(wait, "test", sched.PoolTest)
		cancel()
		if err != nil {
			return err
		}
		it := job.Item
		c.enter(it)
		time.Sleep(time.Millisecond)
		c.leave(it)
	}
	if rand.IntN(10) == 0 {
		return errors.New("chance")
	}
	if rand.IntN(30) == 0 {
		panic("chance")
	}
	return nil
}

func newCrowd(t *testing.T, kind string, n int, wrap func(store.Store) store.Store) *crowd {
	c := &crowd{t: t, taken: map[string]int{}, runs: map[string]int{},
		limit: sched.Limits{Agents: 3, API: 2, Tests: 1, Jobs: 6, CPU: 1, JobsPerProject: 3, MapsPerProject: 1}}
	s := shop{Kind: kind}
	s.create(t)
	for range n {
		st, err := s.open(t.Context())
		must(t, err)
		st = wrap(st)
		y := &yard{t: t, store: st, locks: lock.New(st, lock.Options{})}
		y.queue, err = newQueue(st, y.locks, sched.Options{Limits: c.limit, MaxAttempts: 1 << 30})
		must(t, err)
		t.Cleanup(func() { must(t, y.locks.Close(), y.store.Close()) })
		c.yards = append(c.yards, y)
	}
	return c
}

func (c *crowd) one() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) == 0 {
		return "j1"
	}
	return c.known[rand.IntN(len(c.known))]
}

// Several managers use one store while items are queued, run, change phase, are canceled and
// retried, and people hold locks. No conflicting items overlap, the caps hold, and in the end
// every item has ended and every slot is free.
//
// shows: SW-53 SW-71 DL-80 GP-11
func TestCrowd(t *testing.T) {
	for _, kind := range []string{"SQLite", "PostgreSQL"} {
		t.Run(kind, func(t *testing.T) {
			c := newCrowd(t, kind, 3, func(st store.Store) store.Store { return st })
			c.bustle(storetest.Times(20, 40), func(err error) {
				if lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
					t.Errorf("trouble: %v", err)
				}
			})
			c.settle()
		})
	}
}

// bustle runs all managers until each has queued the given number of items.
func (c *crowd) bustle(orders int, trouble func(error)) {
	t := c.t
	ctx, stop := context.WithCancel(t.Context())
	var others, orderers sync.WaitGroup
	var made atomic.Int64
	var workers []*sched.Worker
	for n, y := range c.yards {
		w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 3, Node: fmt.Sprint("n", n), Run: c.run, TickEvery: 20 * time.Millisecond, OnError: trouble})
		must(t, err)
		workers = append(workers, w)
		orderers.Go(func() {
			for range orders {
				items, err := y.queue.Enqueue(t.Context(), c.order(int(made.Add(1))))
				if err != nil {
					trouble(err)
					continue
				}
				c.mu.Lock()
				c.known = append(c.known, items[0].ID)
				c.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
		})
		act := func(err error) {
			switch lockkeeper.CodeOf(err) {
			case lockkeeper.CodeRefused, lockkeeper.CodeInput:
			default:
				if err != nil && ctx.Err() == nil {
					trouble(err)
				}
			}
		}
		others.Go(func() {
			for ctx.Err() == nil {
				switch rand.IntN(6) {
				case 0:
					_, err := y.queue.Cancel(ctx, c.one(), ada, "chance")
					act(err)
				case 1, 2:
					_, err := y.queue.Retry(ctx, c.one(), ada)
					act(err)
				case 3:
					_, err := y.queue.Tick(ctx)
					act(err)
				default:
					g, err := y.locks.Acquire(ctx, lockkeeper.Request{Holder: "ada", Locks: writes(fmt.Sprint("f", rand.IntN(6))), Policy: "person"}, time.Second)
					if err == nil {
						time.Sleep(time.Millisecond)
						for g.Release(context.WithoutCancel(ctx)) != nil {
						}
					} else if lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
						act(err)
					}
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	orderers.Wait()
	stop()
	others.Wait()
	for i, w := range workers {
		if i == 0 {
			must(t, w.Close())
			continue
		}
		_, err := w.Stop(t.Context())
		must(t, err)
	}
}

// settle runs the remaining items and checks that nothing is left.
func (c *crowd) settle() {
	t, y := c.t, c.yards[0]
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	defer cancel()
	for {
		for _, it := range y.all() {
			if it.Status == lockkeeper.ItemError {
				_, err := y.queue.Retry(ctx, it.ID, ada)
				must(t, err)
			}
		}
		w, err := y.queue.Start(ctx, sched.WorkerOptions{Slots: 4, Node: "last", Run: c.run, UntilEmpty: true, TickEvery: time.Hour, OnError: func(err error) { t.Log("last:", err) }})
		must(t, err)
		over := make(chan error, 1)
		go func() { over <- w.Wait() }()
		select {
		case err := <-over:
			must(t, err)
		case <-ctx.Done():
			for _, it := range y.all() {
				if it.Status != lockkeeper.ItemCompleted {
					t.Errorf("%s is %s, stage %d, waiting on %q, woken by %q, failure %+v, grant %s", it.ID, it.Status, it.Stage, it.WaitsOn, it.WokenBy, it.Failure, it.GrantID)
				}
			}
			must(t, w.Close(), <-over)
			t.Fatal("it never comes to an end")
		}
		left := 0
		for _, it := range y.all() {
			if it.Status != lockkeeper.ItemCompleted {
				left++
			}
		}
		if left == 0 {
			break
		}
	}
	must(t, y.store.View(t.Context(), func(r store.Reader) error {
		for _, pool := range []string{sched.PoolAgent, sched.PoolAPI, sched.PoolTest, sched.PoolJobs, sched.PoolCPU, "jobs of a", "jobs of b", "maps of a", "maps of b"} {
			if n, err := r.SlotsTaken(pool); n != 0 || err != nil {
				t.Errorf("%d slots of %s are lost, %v", n, pool, err)
			}
		}
		recs, err := r.List(0, 100)
		for _, rec := range recs {
			t.Errorf("left: %+v", rec)
		}
		return err
	}))
	for _, it := range y.all() {
		if c.runs[it.ID] < 1 {
			t.Errorf("%s is %s and never ran", it.ID, it.Status)
		}
	}
}
