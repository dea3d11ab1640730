package pipeline

import (
	"context"
	"fmt"
	"slices"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
)

// jobTurn is an item of the queue.
type jobTurn struct {
	job   *sched.Job
	locks *lock.Manager
}

func (j jobTurn) Phase(ctx context.Context, phase string, pools ...string) error {
	return j.job.Phase(ctx, phase, pools...)
}

func (j jobTurn) Holds(pool string) bool {
	it := &j.job.Item
	return it.Stage == lockkeeper.StageRunning && slices.Contains(it.Pools, pool)
}

func (j jobTurn) Note(ctx context.Context, text string) error { return j.job.Note(ctx, text) }
func (j jobTurn) ID() string                                  { return j.job.Item.ID }
func (j jobTurn) Mark() string                                { return j.job.Grant.ID }
func (j jobTurn) Grant() *lockkeeper.Grant                    { return &j.job.Grant.Grant }
func (j jobTurn) Slot() int                                   { return j.job.Item.Slot }
func (j jobTurn) Started(ctx context.Context, group lockkeeper.Process) error {
	_, err := j.locks.SetProcess(ctx, j.job.Grant.ID, j.job.Grant.Token, group)
	return err
}

// looseTurn is a piece of work of the legacy mode: slots are all that it has.
type looseTurn struct {
	id    string
	pools map[string]chan int // free slots, by pool
	held  map[string]int      // the slot that is held of each pool
}

func (p *Pipeline) newLooseTurn(name string) *looseTurn {
	return &looseTurn{id: fmt.Sprintf("%s.%d", name, p.looseIDs.Add(1)), pools: p.loose, held: map[string]int{}}
}

func (l *looseTurn) Phase(ctx context.Context, _ string, pools ...string) error {
	l.giveBack()
	for _, pool := range pools {
		select {
		case l.held[pool] = <-l.pools[pool]:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (l *looseTurn) giveBack() {
	for pool, slot := range l.held {
		l.pools[pool] <- slot
		delete(l.held, pool)
	}
}

func (l *looseTurn) Holds(pool string) bool { return l.held[pool] != 0 }

func (l *looseTurn) Note(context.Context, string) error                { return nil }
func (l *looseTurn) ID() string                                        { return l.id }
func (l *looseTurn) Mark() string                                      { return "loose-" + l.id }
func (l *looseTurn) Grant() *lockkeeper.Grant                          { return nil }
func (l *looseTurn) Slot() int                                         { return l.held[sched.PoolTest] }
func (l *looseTurn) Started(context.Context, lockkeeper.Process) error { return nil }

// slotsOf makes the pools of the legacy mode.
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
