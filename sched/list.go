package sched

import (
	"context"

	"lockkeeper"
	"lockkeeper/store"
)

// Depth returns how many items are queued. Dispatched items that wait for a slot do not
// count.
func (q *Queue) Depth(ctx context.Context) (n int, err error) {
	err = q.store.View(ctx, func(r store.Reader) error {
		c, err := r.Census()
		n = c.Queued()
		return err
	})
	return n, err
}

// Active lists the dispatched items, oldest first.
func (q *Queue) Active(ctx context.Context) (list []*lockkeeper.Item, err error) {
	err = q.store.View(ctx, func(r store.Reader) (err error) {
		list, err = r.Items(store.ItemQuery{Status: lockkeeper.ItemDispatched, Limit: pageSize})
		return err
	})
	return list, err
}

// pageSize bounds how many items one read returns.
const pageSize = 10_000
