package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
)

// A backlog is a queue with nine tenths of its items blocked, and a worker that runs one
// item.
type backlog struct {
	*bench
	queue  *sched.Queue
	worker lockkeeper.Worker
	job    *sched.Job
	queued int
	took   []float64
}

// hotPaths is the number of paths that the blocked items wait for.
const hotPaths = 100

func newBacklog(b *bench, st store.Store, items int) *backlog {
	locks := b.manager(st, lock.Options{})
	l := &backlog{bench: b, worker: lockkeeper.Worker{ID: "bench", Node: "here"}, queue: get(sched.New(st, locks, sched.Options{Phases: flow.QueueOrder()}))}
	for i := range hotPaths {
		get(locks.TryAcquire(b.ctx, lockkeeper.Request{Holder: "ada", Policy: "person", Locks: writes(hot(i))}))
	}
	var specs []sched.ItemSpec
	for i := range items {
		if i%10 == 0 {
			specs = append(specs, l.free())
		} else { // dispatch tries these items first, and they must wait
			specs = append(specs, sched.ItemSpec{Workflow: fmt.Sprint("blocked ", i), Phase: "verify", Pools: []string{sched.PoolAgent},
				Locks: writes(hot(i), fmt.Sprintf("app/models/blocked_%06d.rb", i))})
		}
	}
	for some := range slices.Chunk(specs, 1000) {
		get(l.queue.Enqueue(b.ctx, some...))
	}
	l.job = get(l.queue.Dispatch(b.ctx, l.worker))
	return l
}

func hot(i int) string { return fmt.Sprintf("app/controllers/concerns/hot_%03d.rb", i%hotPaths) }

// free returns the next item that no lock blocks.
func (l *backlog) free() sched.ItemSpec {
	l.queued++
	return sched.ItemSpec{Workflow: fmt.Sprint("free ", l.queued), Phase: "apply", Project: fmt.Sprint("p", l.queued%17), Pools: []string{sched.PoolAgent},
		Locks: writes(fmt.Sprintf("app/controllers/free_%06d.rb", l.queued), fmt.Sprintf("app/views/free_%06d.erb", l.queued))}
}

// turn ends the item of the worker and dispatches the next one, which it measures. Then it
// queues another item, which it does not measure.
func (l *backlog) turn() {
	began := monotonic()
	next, err := l.job.Finish(l.ctx, nil, &l.worker)
	l.took = append(l.took, float64(monotonic()-began))
	check(err)
	if next == nil {
		check(fmt.Errorf("no item could start, with %d queued", l.queued))
	}
	l.job = next
	get(l.queue.Enqueue(l.ctx, l.free()))
}

// dispatch measures the time from the end of an item to the dispatch of the next.
// It uses backlogs of 200, 1,000, 10,000 and 100,000 items, in turns.
func dispatch(b *bench, name string, turns int, limit float64, open func(items int) store.Store) []row {
	var logs []*backlog
	for _, items := range []int{200, 1_000, 10_000, 100_000} {
		logs = append(logs, newBacklog(b, open(items), items))
	}
	for turn := range b.rounds * slicesPerRound {
		for k := range logs {
			for range turns {
				logs[(k+turn)%len(logs)].turn()
			}
		}
	}
	few, some, many, most := median(logs[0].took), median(logs[1].took), median(logs[2].took), median(logs[3].took)
	how := "In one transaction an item ends, its locks and slots are released, and the next item is dispatched."
	return []row{
		row{What: name + ": end of an item to the next dispatch, 10,000 queued, 9,000 of them blocked", Ours: ns(many), Peer: "–", How: how}.atMost(many/1e3, limit, "%.0f µs"),
		row{What: name + ": the same, to 200 queued", Ours: ns(many), Peer: ns(few), How: how}.atMost(many/few, 2, "%.2f×"),
		row{What: name + ": 100,000 queued, to 1,000", Ours: ns(most), Peer: ns(some), How: how}.atMost(most/some, 1.3, "%.2f×"),
	}
}

func queueMemory(b *bench) []row {
	return dispatch(b, "Queue in memory", 200, 50, func(int) store.Store { return memstore.New("bench", memstore.Options{}) })
}

func queueSQLite(b *bench) []row {
	return dispatch(b, "Queue in SQLite FULL", 20, 600, func(items int) store.Store {
		return b.openSQLite(b.createSQLite(filepath.Join(b.dir, fmt.Sprintf("queue-%d.db", items))))
	})
}
