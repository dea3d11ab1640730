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
	return q.locks.Update(ctx, func(tx *lock.Tx) error {
		for after := uint64(0); ; {
			page, err := tx.Items(store.ItemQuery{Status: lockkeeper.ItemQueued, After: after, Limit: examineAtOnce})
			if err != nil {
				return err
			}
			for _, it := range page {
				after = it.Seq
				if it.Root != root || it.DispatchedAt.IsZero() || len(it.Locks) == 0 {
					continue
				}
				if err := q.reserveBegun(tx, it); err != nil {
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
func (q *Queue) reserveBegun(tx *lock.Tx, it *lockkeeper.Item) error {
	if it.HasReserved() {
		if rec, err := tx.Get(it.GrantID); err != nil || rec != nil {
			return errors.Join(err, tx.Keep(it.GrantID, reservation))
		}
	}
	return q.reserve(tx, it.Clone())
}

// reserve lets an item be looked at anew, with its locks reserved.
func (q *Queue) reserve(tx *lock.Tx, it *lockkeeper.Item) error {
	id, err := tx.Reserve(q.request(it, nil), reservation)
	if err != nil {
		return err
	}
	it.GrantID = id
	if it.Stage == lockkeeper.StageWaiting {
		return store.WakeItem(tx, it)
	}
	it.CheckAt = tx.Now().Lease.Add(keepEvery)
	return tx.SaveItem(it)
}
