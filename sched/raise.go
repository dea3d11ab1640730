package sched

import (
	"cmp"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

// raisedRank is the rank of items that have waited too long: it comes before those of all
// phases.
const raisedRank = -1

// raise puts an item before all others that do not hold locks, and behind those that were
// raised before it: the number of the event is its turn.
func (q *Queue) raise(a *lock.Act, it *lockkeeper.Item, reason string, found []lockkeeper.Overlap) error {
	ev := about(lockkeeper.EventEscalated, it)
	ev.Reason, ev.Conflicts = reason, lock.Conflicts(found)
	seq, err := a.Note(ev)
	it.Escalated, it.Rank, it.Tag = true, raisedRank, seq
	return err
}

// countSlotWait is how often the time of an item that waits for a slot is added to what is
// stored: so much is lost if the host restarts, and its lease clock with it.
const countSlotWait = time.Minute

// A slotLine is a set of items of which the first counts its wait for a slot: those that a
// worker may take, or those parked on one pool, of one rank of phases.
type slotLine struct {
	ready   bool
	line    string // root or pool
	holding bool
	rank    int
}

// escalateSlotWaits lets the first of each rank that waits for a slot count its time, and
// raises it after EscalateAfter. Those behind it wait for their turn: each of them is the
// first once those before it have started. It returns how long until the next one is due;
// 0: none is.
func (q *Queue) escalateSlotWaits(a *lock.Act) (next time.Duration, err error) {
	tx, now := a.Tx(), a.Now().Lease
	leaders, err := tx.SlotLeaders()
	if err != nil {
		return 0, err
	}
	led := map[slotLine]bool{}
	var overdue []*lockkeeper.Item
	for _, it := range leaders {
		of := lineOf(it)
		if led[of] { // by one that was raised
			continue
		}
		if led[of] = true; it.Escalated {
			continue
		}
		left := q.opt.EscalateAfter - it.Led(now)
		it = it.Clone()
		switch {
		case it.Leads == 0:
			it.Leads = now
		case left <= 0:
			it.StopLeading(now)
			overdue = append(overdue, it)
			continue
		case now.Until(it.Leads) >= countSlotWait:
			it.StopLeading(now)
			it.Leads = now
		default:
			next = earlier(next, left)
			continue
		}
		if err := tx.SaveItem(it); err != nil {
			return 0, err
		}
		next = earlier(next, max(left, time.Millisecond))
	}
	return next, q.raiseAll(a, overdue)
}

// raiseAll raises items that have waited too long for a slot: first the one that has waited
// longest, then the one with the worst rank, which would wait longest without.
func (q *Queue) raiseAll(a *lock.Act, overdue []*lockkeeper.Item) error {
	slices.SortFunc(overdue, func(x, y *lockkeeper.Item) int {
		return cmp.Or(cmp.Compare(y.Blocked, x.Blocked), cmp.Compare(y.Rank, x.Rank), cmp.Compare(x.Seq, y.Seq))
	})
	for _, it := range overdue {
		if err := q.raise(a, it, "waited for a slot for "+it.Blocked.Round(time.Second).String(), nil); err != nil {
			return err
		}
		if err := a.Tx().SaveItem(it); err != nil {
			return err
		}
	}
	return nil
}

// stopSlotWait ends the wait of an item for a slot, because it waits for something else.
// Whole seconds count: every item that is about to start waits for a moment.
func stopSlotWait(it *lockkeeper.Item, now lockkeeper.Instant) {
	before := it.Blocked
	it.StopLeading(now)
	it.Blocked -= (it.Blocked - before) % time.Second
}

func lineOf(it *lockkeeper.Item) slotLine {
	rank, _ := RankOf(it.Phase)
	if it.Stage == lockkeeper.StageReady {
		return slotLine{ready: true, line: it.Root, holding: it.IsHolding(), rank: rank}
	}
	return slotLine{line: it.ParkedOn, holding: it.IsHolding(), rank: rank}
}

// earlier is the shorter of two waits, of which 0 means none.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
