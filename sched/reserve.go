package sched

import (
	"context"
	"errors"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// ReserveBegun reserves the locks of the queued items of a root that were dispatched before.
// Their work is based on files that no other holder may change before it lands. A process
// that resumes a root calls it before its worker starts. Ticks renew the reservations; they
// end with the process that made them.
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

// reserveBegun takes over the reservation of a dead process, or makes a new one.
func (q *Queue) reserveBegun(tx *lock.Tx, it *lockkeeper.Item) error {
	if it.HasReserved() {
		if rec, err := tx.Get(it.GrantID); err != nil || rec != nil {
			return errors.Join(err, tx.Keep(it.GrantID, reservation))
		}
	}
	return q.reserve(tx, it.Clone())
}

// reserve reserves the locks of an item and makes it ready.
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
