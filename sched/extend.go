package sched

import (
	"context"
	"maps"

	"lockkeeper/store"
)

// Extend sets how many slots other machines add to pools, in the eyes of this process. It wakes as
// many waiting items as slots came.
func (q *Queue) Extend(ctx context.Context, extra map[string]int) error {
	before := q.extra.Load()
	if before != nil && maps.Equal(*before, extra) {
		return nil
	}
	extra = maps.Clone(extra)
	q.extra.Store(&extra)
	more := map[string]int{}
	for pool, n := range extra {
		if before != nil {
			n -= (*before)[pool]
		}
		if n > 0 {
			more[pool] = n
		}
	}
	if len(more) == 0 {
		return nil
	}
	if n := more[PoolAgent]; n > 0 {
		more[PoolPrepare] = n
	}
	return q.store.Update(ctx, func(tx store.Tx) error {
		for pool, n := range more {
			for range n {
				if err := store.WakePool(tx, pool); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// limit returns how many slots a pool has, with those of other machines.
func (q *Queue) limit(pool string) int {
	limits, extra := q.opt.Limits, q.extra.Load()
	if extra == nil {
		n, _ := limits.Of(pool)
		return n
	}
	limits.Agents += (*extra)[PoolAgent] // more items are prepared for more agents
	n, _ := limits.Of(pool)
	if pool != PoolAgent {
		n += (*extra)[pool]
	}
	return n
}
