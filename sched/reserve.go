package sched

import (
	"context"
	"errors"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// ReserveBegun gives the items of a root that were under way before, and are queued
// again, their locks or their places in the engine's line: what they have done was done
// for files that nobody else may change until it has landed. It is for whoever goes on
// with a root, before its worker claims anything. A reservation lasts as long as
// somebody ticks, and falls with the process that made it.
func (q *Queue) ReserveBegun(ctx context.Context, root string) error {
	return q.locks.Within(ctx, func(a *lock.Act) error {
		for after := uint64(0); ; {
			page, err := a.Tx().Items(store.ItemQuery{Status: lockkeeper.ItemQueued, After: after, Limit: examineAtOnce})
			if err != nil {
				return err
			}
			for _, it := range page {
				after = it.Seq
				if it.Root != root || it.DispatchedAt.IsZero() || len(it.Locks) == 0 {
					continue
				}
				if err := q.reserveBegun(a, it); err != nil {
					return err
				}
			}
			if len(page) < examineAtOnce {
				return nil
			}
		}
	})
}

// reserveBegun takes over the reservation that somebody who died had made for an item, or
// makes one.
func (q *Queue) reserveBegun(a *lock.Act, it *lockkeeper.Item) error {
	if it.HasReserved() {
		if rec, err := a.Tx().Get(it.GrantID); err != nil || rec != nil {
			return errors.Join(err, a.Keep(it.GrantID, reservation))
		}
	}
	return q.reserve(a, it.Clone())
}

// reserve lets an item be looked at anew, with its locks reserved.
func (q *Queue) reserve(a *lock.Act, it *lockkeeper.Item) error {
	id, err := a.Reserve(q.request(it, nil), reservation)
	if err != nil {
		return err
	}
	it.GrantID = id
	if it.Stage == lockkeeper.StageWaiting {
		return store.WakeItem(a.Tx(), it)
	}
	it.CheckAt = a.Now().Lease.Add(keepEvery)
	return a.Tx().SaveItem(it)
}
