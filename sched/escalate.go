package sched

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Escalation moves an item that has waited too long for locks or for a slot before all
// other queued items.

// escalatedRank is the rank of escalated items. It comes before the ranks of all phases.
const escalatedRank = -1

// moveUp puts an item before all others that do not hold locks and were not escalated
// earlier. Escalated items are ordered by the numbers of their events.
func (q *Queue) moveUp(tx *lock.Tx, it *lockkeeper.Item, reason string, found []store.Overlap) error {
	ev := about(lockkeeper.EventEscalated, it)
	ev.Reason, ev.Conflicts = reason, lock.Conflicts(found)
	seq, err := tx.Append(ev)
	it.Escalated, it.Rank, it.Turn = true, escalatedRank, seq
	return err
}

// isOvertaken reports whether an escalated item is blocked by a request that it should have come
// before: one that is newer than its escalation, or one from outside the queue, which does not know
// the order of the queue. Only a reservation stops the next one.
//
// Other items that block it were dispatched earlier and come to an end. A reservation would keep
// everything that reads its files waiting behind them for nothing.
func isOvertaken(it *lockkeeper.Item, found []store.Overlap) bool {
	return it.Escalated && slices.ContainsFunc(found, func(o store.Overlap) bool {
		return max(o.Record.Fence, o.Record.Ticket) > it.Turn || o.Record.Metadata[lock.ItemKey] == ""
	})
}

// countSlotWait is how often the waiting time of an item for a slot is stored. A restart of
// the host, which restarts the lease clock, loses at most that.
const countSlotWait = time.Minute

// A slotGroup is a group of items that wait for the same slots: the ready items of a root, or
// the items that wait on a pool, with phases of one rank. Only its first item, the leader,
// counts its waiting time.
type slotGroup struct {
	ready   bool
	key     string // root or pool
	holding bool
	rank    int
}

// escalateSlotWaits counts the waiting time of each leader of a slotGroup and escalates it
// after EscalateAfter. The items behind it do not count: each becomes the leader when those
// before it have started. It returns the time until the next leader is escalated; 0: none.
func (q *Queue) escalateSlotWaits(tx *lock.Tx) (next time.Duration, err error) {
	now := tx.Now().Lease
	leaders, err := tx.SlotLeaders()
	if err != nil {
		return 0, err
	}
	led := map[slotGroup]bool{}
	var overdue []*lockkeeper.Item
	for _, it := range leaders {
		of := q.groupOf(it)
		if led[of] { // an escalated item leads this queue
			continue
		}
		if led[of] = true; it.Escalated {
			continue
		}
		left := q.opt.EscalateAfter - it.FirstFor(now)
		it = it.Clone()
		switch {
		case it.FirstSince == 0:
			it.FirstSince = now
		case left <= 0:
			it.StopFirst(now)
			overdue = append(overdue, it)
			continue
		case now.Until(it.FirstSince) >= countSlotWait:
			it.StopFirst(now)
			it.FirstSince = now
		default:
			next = earlier(next, left)
			continue
		}
		if err := tx.SaveItem(it); err != nil {
			return 0, err
		}
		next = earlier(next, max(left, time.Millisecond))
	}
	return next, q.escalateAll(tx, overdue)
}

// escalateAll escalates items that have waited too long for a slot. The longest wait comes
// first, and among equal waits the worst rank, which would wait longest otherwise.
func (q *Queue) escalateAll(tx *lock.Tx, overdue []*lockkeeper.Item) error {
	slices.SortFunc(overdue, func(x, y *lockkeeper.Item) int {
		return cmp.Or(cmp.Compare(y.Blocked, x.Blocked), cmp.Compare(y.Rank, x.Rank), cmp.Compare(x.Seq, y.Seq))
	})
	for _, it := range overdue {
		if err := q.moveUp(tx, it, "waited for a slot for "+it.Blocked.Round(time.Second).String(), nil); err != nil {
			return err
		}
		if err := tx.SaveItem(it); err != nil {
			return err
		}
	}
	return nil
}

// stopSlotWait ends the wait of an item for a slot, because it waits for something else. It
// counts whole seconds only, because every item waits a moment before it starts.
func stopSlotWait(it *lockkeeper.Item, now lockkeeper.Instant) {
	before := it.Blocked
	it.StopFirst(now)
	it.Blocked -= (it.Blocked - before) % time.Second
}

func (q *Queue) groupOf(it *lockkeeper.Item) slotGroup {
	rank, _ := q.opt.Phases.Rank(it.Phase)
	if it.Stage == lockkeeper.StageReady {
		return slotGroup{ready: true, key: it.Root, holding: it.IsHolding(), rank: rank}
	}
	return slotGroup{key: it.WaitsOn, holding: it.IsHolding(), rank: rank}
}

// earlier returns the shorter of two waits; 0 means no wait.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// ReserveBegun reserves the locks of the queued items of a root that were dispatched before.
// Their work is based on files that no other holder may change before it lands. A process
// that resumes a root calls it before its worker starts. Ticks renew the reservations; they
// end with the process that made them.
func (q *Queue) ReserveBegun(ctx context.Context, root string) error {
	return q.locks.Update(ctx, func(tx *lock.Tx) error {
		return eachItem(tx, lockkeeper.ItemQueued, func(it *lockkeeper.Item) error {
			if it.Root != root || it.DispatchedAt.IsZero() || len(it.Locks) == 0 {
				return nil
			}
			return q.reserveBegun(tx, it)
		})
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
