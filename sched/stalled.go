package sched

import (
	"context"
	"slices"

	"lockkeeper"
	"lockkeeper/store"
)

// Stalled lists items that could start now: an idle worker could take them, and what they wait for
// is free. It lists at most one item for each root, path and pool. In a queue that works each
// such item starts within a moment, so a second call does not list it again.
func (q *Queue) Stalled(ctx context.Context) (list []*lockkeeper.Item, err error) {
	err = q.store.View(ctx, func(r store.Reader) error {
		live, idle, err := idleWorkers(r)
		if err != nil || len(live) == 0 {
			return err
		}
		var roots []string
		for _, w := range live {
			roots = append(roots, w.TakesRoots()...)
		}
		slices.Sort(roots)
		for _, root := range slices.Compact(roots) {
			it, err := r.FirstReady(root)
			if err != nil {
				return err
			}
			if it == nil || it.IsHolding() {
				continue // the process that runs it serves it
			}
			if isTakenBy(idle, it) {
				list = append(list, it)
			}
		}
		for _, prefix := range []string{store.OnPool(""), store.OnAnyPath} {
			keys, err := r.WaitKeys(prefix)
			if err != nil {
				return err
			}
			for _, key := range keys {
				it, err := r.FirstWaiting(key)
				if err != nil {
					return err
				}
				free, err := isFree(r, live, idle, it)
				if err != nil {
					return err
				}
				if free {
					list = append(list, it)
				}
			}
		}
		return nil
	})
	return list, err
}

// idleWorkers lists the live workers that are not paused, and those of them that have a free slot.
func idleWorkers(r store.Reader) (live, idle []lockkeeper.Worker, err error) {
	workers, err := r.Workers()
	if err != nil {
		return nil, nil, err
	}
	busy := map[string]int{}
	err = eachItem(r, lockkeeper.ItemDispatched, func(it *lockkeeper.Item) error {
		busy[it.Worker]++
		return nil
	})
	live = slices.DeleteFunc(slices.Clone(workers), func(w lockkeeper.Worker) bool { return w.Paused || w.Expires <= r.Now().Lease })
	idle = slices.DeleteFunc(slices.Clone(live), func(w lockkeeper.Worker) bool { return busy[w.ID] >= w.Slots })
	return live, idle, err
}

// isTakenBy reports whether one of some workers runs items of the root of a queued item.
func isTakenBy(workers []lockkeeper.Worker, it *lockkeeper.Item) bool {
	return it.Status == lockkeeper.ItemQueued && slices.ContainsFunc(workers, func(w lockkeeper.Worker) bool { return slices.Contains(w.TakesRoots(), it.Root) })
}

// isFree reports whether one of the idle workers, or the worker that runs the item, could take what
// the item waits for. No item may have been woken on the same key.
func isFree(r store.Reader, live, idle []lockkeeper.Worker, it *lockkeeper.Item) (bool, error) {
	if pool, ok := store.PoolOf(it, it.WaitsOn); ok {
		n, err := r.SlotsTaken(pool)
		if it.IsHolding() {
			return slices.ContainsFunc(live, func(w lockkeeper.Worker) bool { return n < w.Pools[pool] && w.ID == it.Worker }), err
		}
		return slices.ContainsFunc(idle, func(w lockkeeper.Worker) bool { return n < w.Pools[pool] && slices.Contains(w.TakesRoots(), it.Root) }), err
	}
	if !isTakenBy(idle, it) {
		return false, nil
	}
	found, _, err := r.Overlapping(store.Query{Locks: it.Locks, Before: store.AnyTicket})
	return len(found) == 0, err
}
