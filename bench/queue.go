package main

import (
	"context"
	"fmt"
	"path/filepath"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
	"lockkeeper/store/sqlstore"
)

// backlog is a queue with nine tenths of its items blocked, and a worker with one item in
// its hands.
type backlog struct {
	locks  *lock.Manager
	queue  *sched.Queue
	worker lockkeeper.Worker
	job    *sched.Job
	queued int
	took   []float64
}

// hotPaths is how many paths the blocked items wait for.
const hotPaths = 100

func newBacklog(ctx context.Context, st store.Store, items int) (*backlog, error) {
	b := &backlog{locks: lock.New(st, lock.Options{}), worker: lockkeeper.Worker{ID: "bench", Node: "here"}}
	var err error
	if b.queue, err = sched.New(st, b.locks, sched.Options{Phases: flow.QueueOrder()}); err != nil {
		return nil, err
	}
	for i := range hotPaths {
		if _, err := b.locks.TryAcquire(ctx, lockkeeper.Request{Holder: "ada", Policy: "person", Locks: writes([]string{hot(i)})}); err != nil {
			return nil, err
		}
	}
	var orders []sched.ItemSpec
	flush := func() error {
		_, err := b.queue.Enqueue(ctx, orders...)
		orders = orders[:0]
		return err
	}
	for i := range items {
		if i%10 == 0 {
			orders = append(orders, b.free())
		} else { // ranked before the others: each is checked, and waits
			orders = append(orders, sched.ItemSpec{Workflow: fmt.Sprint("blocked ", i), Phase: "verify", Pools: []string{sched.PoolAgent},
				Locks: writes([]string{hot(i), fmt.Sprintf("app/models/blocked_%06d.rb", i)})})
		}
		if len(orders) == 1000 {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	b.job, err = b.queue.Dispatch(ctx, b.worker)
	return b, err
}

func hot(i int) string { return fmt.Sprintf("app/controllers/concerns/hot_%03d.rb", i%hotPaths) }

// free is an order that nothing blocks.
func (b *backlog) free() sched.ItemSpec {
	b.queued++
	return sched.ItemSpec{Workflow: fmt.Sprint("free ", b.queued), Phase: "apply", Project: fmt.Sprint("p", b.queued%17), Pools: []string{sched.PoolAgent},
		Locks: writes([]string{fmt.Sprintf("app/controllers/free_%06d.rb", b.queued), fmt.Sprintf("app/views/free_%06d.erb", b.queued)})}
}

// turn ends the item in hand and claims the next, which is measured, and queues
// another for it, which is not.
func (b *backlog) turn(ctx context.Context) error {
	began := monotonic()
	next, err := b.job.Finish(ctx, nil, &b.worker)
	b.took = append(b.took, float64(monotonic()-began))
	if err != nil {
		return err
	}
	if next == nil {
		return fmt.Errorf("nothing could start, with %d queued", b.queued)
	}
	b.job = next
	_, err = b.queue.Enqueue(ctx, b.free())
	return err
}

// dispatch measures the time from the end of an item to the dispatch of the next in
// backlogs of 200, 10,000 and 100,000 items, in turns.
func dispatch(ctx context.Context, b *bench, name string, turns int, limit float64, open func(items int) (store.Store, error)) ([]row, error) {
	sizes := []int{200, 10_000, 100_000}
	logs := make([]*backlog, len(sizes))
	for i, items := range sizes {
		st, err := open(items)
		if err != nil {
			return nil, err
		}
		defer st.Close()
		if logs[i], err = newBacklog(ctx, st, items); err != nil {
			return nil, err
		}
		defer logs[i].locks.Close()
	}
	for turn := range b.rounds * slicesPerRound {
		for k := range logs {
			for range turns {
				if err := logs[(k+turn)%len(logs)].turn(ctx); err != nil {
					return nil, err
				}
			}
		}
	}
	few, many, most := median(logs[0].took), median(logs[1].took), median(logs[2].took)
	how := "One transaction ends an item, frees its locks and slots, and dispatches the next: " + name + "."
	return []row{
		row{What: name + ": end of an item to the next dispatch, 10,000 queued, 9,000 of them blocked", Ours: ns(many), Peer: "–", How: how}.atMost(many/1e3, limit, "%.0f µs"),
		row{What: name + ": the same, to 200 queued", Ours: ns(many), Peer: ns(few), How: how}.atMost(many/few, 2, "%.2f×"),
		row{What: name + ": 100,000 queued, to 10,000", Ours: ns(most), Peer: ns(many), How: how + " Ten times as many items make a logarithm of four thirds."}.atMost(most/many, 4.0/3, "%.2f×"),
	}, nil
}

func queueMemory(ctx context.Context, b *bench) ([]row, error) {
	return dispatch(ctx, b, "Queue in memory", 200, 50, func(int) (store.Store, error) {
		return memstore.New("bench", memstore.Options{}), nil
	})
}

func queueSQLite(ctx context.Context, b *bench) ([]row, error) {
	return dispatch(ctx, b, "Queue in SQLite FULL", 20, 600, func(items int) (store.Store, error) {
		path := filepath.Join(b.dir, fmt.Sprintf("queue-%d.db", items))
		if err := sqlstore.CreateSQLite(ctx, path, "bench"); err != nil {
			return nil, err
		}
		return sqlstore.OpenSQLite(ctx, path, "bench", sqlstore.Options{})
	})
}
