package sched_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// inThreeParts does the work of an item as a run does: it prepares, has the slot of an agent for as
// long as the agent works, and collects.
func inThreeParts(d time.Duration) func(context.Context, *sched.Job) error {
	return func(ctx context.Context, job *sched.Job) error {
		if !slices.Contains(job.Item.Pools, sched.PoolAgent) {
			return takes(d)(ctx, job)
		}
		if err := takes(d/10)(ctx, job); err != nil {
			return err
		}
		if err := job.Phase(ctx, job.Item.Phase, sched.PoolAgent); err != nil {
			return err
		}
		if err := errors.Join(takes(d)(ctx, job), job.ReturnSlots(context.WithoutCancel(ctx))); err != nil {
			return err
		}
		return takes(d/10)(ctx, job)
	}
}

// ahead starts a worker that prepares items.
func (y *yard) ahead(slots int, run func(context.Context, *sched.Job) error) *sched.Worker {
	y.t.Helper()
	w, err := y.queue.Start(y.t.Context(), sched.WorkerOptions{Slots: slots, Node: "here", TickEvery: 1000 * time.Hour, Ahead: true, Run: run})
	must(y.t, err)
	return w
}

func (y *yard) slotsTaken(pool string) (n int) {
	y.t.Helper()
	n, err := store.Read(context.WithoutCancel(y.t.Context()), y.store, func(r store.Reader) (int, error) { return r.SlotsTaken(pool) })
	must(y.t, err)
	return n
}

// A worker prepares the next items while all agents work, and collects the work of the last ones. So
// the slots of agents are never free between the first and the last agent. It prepares few items at
// once, and starts them in the order of the queue.
//
// shows: SW-40 PL-52
func TestPreparedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, rounds, work = 8, 20, 10 * time.Minute
		limits := agents(slots)
		y := newYard(t, sched.Options{Limits: limits, EscalateAfter: 1000 * time.Hour})
		var mu sync.Mutex
		var order []string
		working, most := 0, 0
		var last time.Time
		count := func(step int) {
			mu.Lock()
			defer mu.Unlock()
			if working += step; working > slots {
				t.Errorf("%d agents work in %d slots", working, slots)
			}
			most, last = max(most, y.slotsTaken(sched.PoolPrepare)), time.Now()
		}
		w := y.ahead(100, func(ctx context.Context, job *sched.Job) error {
			count(0)
			must(t, takes(work/10)(ctx, job), job.Phase(ctx, "apply", sched.PoolAgent))
			mu.Lock()
			order = append(order, job.Item.Workflow)
			mu.Unlock()
			count(1)
			must(t, takes(work)(ctx, job))
			count(-1)
			must(t, job.ReturnSlots(ctx), takes(work/10)(ctx, job))
			return nil
		})
		began := time.Now()
		var specs []sched.ItemSpec
		var want []string
		for i := range slots * rounds {
			name := fmt.Sprintf("item %03d", i)
			specs, want = append(specs, sched.ItemSpec{Workflow: name, Phase: "apply", Pools: []string{sched.PoolAgent}, Locks: writes(name), By: ada}), append(want, name)
		}
		_, err := y.queue.Enqueue(t.Context(), specs...)
		must(t, err)
		synctest.Wait()
		time.Sleep(2 * rounds * work)
		synctest.Wait()
		if _, err := w.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The first items are prepared in several rounds, because only a few are prepared at once.
		starts := time.Duration((slots+limits.Prepared()-1)/limits.Prepared()) * work / 10
		if took := last.Sub(began); took > rounds*work+starts {
			t.Errorf("%d agents in each of %d slots took %s, and %s after that", rounds, slots, rounds*work, took-rounds*work)
		}
		if most > limits.Prepared() {
			t.Errorf("%d items were prepared at once, more than %d", most, limits.Prepared())
		}
		for i, name := range order { // items that are prepared at the same time may end in any order
			if at := slices.Index(want, name); at-i > limits.Prepared() || i-at > limits.Prepared() {
				t.Errorf("%s started as number %d", name, i)
			}
		}
		if len(order) != len(want) || y.slotsTaken(sched.PoolPrepare) != 0 || y.slotsTaken(sched.PoolAgent) != 0 {
			t.Errorf("%d of %d items started; slots are taken: %d, %d", len(order), len(want), y.slotsTaken(sched.PoolPrepare), y.slotsTaken(sched.PoolAgent))
		}
	})
}

// A worker that is paused or stopped starts no item that it has prepared. The items return to the
// queue without an attempt, and start after the pause.
//
// shows: SW-59
func TestPausedStartsNothingPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{Limits: agents(1)})
		var mu sync.Mutex
		started := 0
		w := y.ahead(9, func(ctx context.Context, job *sched.Job) error {
			if err := job.Phase(ctx, "apply", sched.PoolAgent); err != nil {
				return err
			}
			mu.Lock()
			started++
			mu.Unlock()
			return takes(time.Hour)(ctx, job)
		})
		var items []*lockkeeper.Item
		for i := range 4 {
			items = append(items, y.enqueue(sched.ItemSpec{Workflow: fmt.Sprint("item ", i), Phase: "apply", Pools: []string{sched.PoolAgent}}))
		}
		synctest.Wait()
		runs := slices.IndexFunc(items, func(it *lockkeeper.Item) bool { return y.item(it.ID).Stage == lockkeeper.StageRunning })
		if started != 1 || runs < 0 || y.slotsTaken(sched.PoolPrepare) != 2 {
			t.Errorf("%d started, and %d are prepared", started, y.slotsTaken(sched.PoolPrepare))
		}
		items = slices.Delete(items, max(runs, 0), max(runs, 0)+1)
		w.Pause()
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		for _, it := range items {
			if now := y.item(it.ID); now.Status != lockkeeper.ItemQueued || now.Attempts != 0 || !slices.Equal(now.Pools, it.Pools) {
				t.Errorf("during the pause %s is %s after %d attempts, with %q", it.ID, now.Status, now.Attempts, now.Pools)
			}
		}
		if started != 1 || y.slotsTaken(sched.PoolPrepare) != 0 {
			t.Errorf("%d started, and %d slots are taken", started, y.slotsTaken(sched.PoolPrepare))
		}
		w.Resume()
		synctest.Wait()
		if started != 2 {
			t.Errorf("after the pause %d started", started)
		}
		must(t, w.Close())
		if started != 2 {
			t.Errorf("at the end %d started", started)
		}
	})
}
