package run

import (
	"context"
	"fmt"
	"slices"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
)

// A queuedWork executes an item of the queue.
type queuedWork struct {
	job   *sched.Job
	locks *lock.Manager
}

func (j queuedWork) Phase(ctx context.Context, phase string, pools ...string) error {
	return j.job.Phase(ctx, phase, pools...)
}

func (j queuedWork) Holds(pool string) bool {
	it := &j.job.Item
	return it.Stage == lockkeeper.StageRunning && slices.Contains(it.Pools, pool)
}

func (j queuedWork) Note(ctx context.Context, text string) error { return j.job.Note(ctx, text) }
func (j queuedWork) ID() string                                  { return j.job.Item.ID }
func (j queuedWork) Mark() string                                { return j.job.Grant.ID }
func (j queuedWork) Grant() *lockkeeper.Grant                    { return &j.job.Grant.Grant }
func (j queuedWork) Slot() int                                   { return j.job.Item.Slot }
func (j queuedWork) Started(ctx context.Context, group lockkeeper.Process) error {
	_, err := j.locks.SetProcess(ctx, j.job.Grant.ID, j.job.Grant.Token, group)
	return err
}

// An unqueuedWork executes work in the legacy mode. It holds slots but no grant.
type unqueuedWork struct {
	id    string
	pools map[string]chan int // free slots, by pool
	held  map[string]int      // the held slot, by pool
}

func (p *Pipeline) newUnqueued(name string) *unqueuedWork {
	return &unqueuedWork{id: fmt.Sprintf("%s.%d", name, p.unqueuedIDs.Add(1)), pools: p.slots, held: map[string]int{}}
}

func (l *unqueuedWork) Phase(ctx context.Context, _ string, pools ...string) error {
	l.freeSlots()
	for _, pool := range pools {
		select {
		case l.held[pool] = <-l.pools[pool]:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (l *unqueuedWork) freeSlots() {
	for pool, slot := range l.held {
		l.pools[pool] <- slot
		delete(l.held, pool)
	}
}

func (l *unqueuedWork) Holds(pool string) bool { return l.held[pool] != 0 }

func (l *unqueuedWork) Note(context.Context, string) error                { return nil }
func (l *unqueuedWork) ID() string                                        { return l.id }
func (l *unqueuedWork) Mark() string                                      { return "loose-" + l.id }
func (l *unqueuedWork) Grant() *lockkeeper.Grant                          { return nil }
func (l *unqueuedWork) Slot() int                                         { return l.held[sched.PoolTest] }
func (l *unqueuedWork) Started(context.Context, lockkeeper.Process) error { return nil }

// slotsOf returns the slot pools of the legacy mode.
func slotsOf(l Limits) map[string]chan int {
	pools := map[string]chan int{}
	for pool, n := range map[string]int{sched.PoolAgent: l.Agents, sched.PoolAPI: l.API, sched.PoolTest: l.Tests} {
		pools[pool] = make(chan int, n)
		for slot := range n {
			pools[pool] <- slot + 1
		}
	}
	return pools
}
