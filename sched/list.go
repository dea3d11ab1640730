package sched

import (
	"context"

	"lockkeeper"
	"lockkeeper/store"
)

// Depth is how many items are queued. Lifecycles that wait for a slot are not among
// them.
func (q *Queue) Depth(ctx context.Context) (n int, err error) {
	err = q.store.View(ctx, func(r store.Reader) error {
		c, err := r.Census()
		n = c.Queued()
		return err
	})
	return n, err
}

// Active lists the items that are dispatched, the oldest first.
func (q *Queue) Active(ctx context.Context) (list []*lockkeeper.Item, err error) {
	err = q.store.View(ctx, func(r store.Reader) (err error) {
		list, err = r.Items(store.ItemQuery{Status: lockkeeper.ItemDispatched, Limit: pageSize})
		return err
	})
	return list, err
}

// pageSize bounds what one look lists.
const pageSize = 10_000
