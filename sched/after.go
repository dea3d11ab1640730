package sched

import (
	"cmp"
	"strconv"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Keys in the data of events about items.
const (
	statusKey   = "status"   // of a released grant: how its item ended
	attemptsKey = "attempts" // of an item that left its worker
)

// leaving returns an event about an item that has left its worker or the queue. It records
// enough for ItemAfter to restore the item as it is now.
func leaving(kind lockkeeper.EventKind, it *lockkeeper.Item) lockkeeper.Event {
	ev := about(kind, it)
	ev.GrantID = it.GrantID
	ev.Data[attemptsKey] = strconv.Itoa(it.Attempts)
	return ev
}

// ItemAfter returns an item as the transaction that appended ev left it, and whether ev ended
// an attempt: the item was completed, failed or requeued. It sets only the fields that the
// event records, so later changes of the item do not affect the result.
func (q *Queue) ItemAfter(it lockkeeper.Item, ev lockkeeper.Event) (lockkeeper.Item, bool) {
	completed := ev.Kind == lockkeeper.EventReleased && ev.Data[statusKey] == string(lockkeeper.ItemCompleted)
	failed, requeued := ev.Kind == lockkeeper.EventFailed, ev.Kind == lockkeeper.EventRequeued
	if ev.Data[lock.ItemKey] != it.ID || !completed && !failed && !requeued {
		return it, false
	}
	it.Phase = cmp.Or(ev.Data["phase"], it.Phase)
	if rank, known := q.opt.Phases.Rank(it.Phase); known {
		it.Rank = rank
	}
	if n, err := strconv.Atoi(ev.Data[attemptsKey]); err == nil {
		it.Attempts = n
	}
	if it.GrantID = ev.GrantID; ev.GrantID == "" { // it returned to the queue
		it.Worker, it.Note = "", ""
	}
	switch {
	case completed:
		setCompleted(&it, ev.At)
	case failed:
		setFailed(&it, lockkeeper.Failure{Phase: it.Phase, Reason: ev.Reason, Conflicts: ev.Conflicts, Attempts: it.Attempts}, ev.At)
	case requeued:
		setRequeued(&it)
	}
	return it, true
}

func setCompleted(it *lockkeeper.Item, at time.Time) {
	it.Enter(lockkeeper.StageEnded)
	it.Status, it.CompletedAt, it.Failure = lockkeeper.ItemCompleted, at, nil
}

func setFailed(it *lockkeeper.Item, why lockkeeper.Failure, at time.Time) {
	it.Enter(lockkeeper.StageEnded)
	it.Status, it.CompletedAt, it.Failure = lockkeeper.ItemError, at, &why
}

func setRequeued(it *lockkeeper.Item) {
	it.Enter(lockkeeper.StageReady)
	it.Status, it.CompletedAt, it.Failure = lockkeeper.ItemQueued, time.Time{}, nil
}

// eventPage is how many events departed reads at a time.
const eventPage = 1_000

// departed returns an item as it was when it left its worker. fence is the number of the
// event that dispatched the item to that worker. found is false if the log no longer has
// the event that ended the attempt.
func (q *Queue) departed(r store.Reader, it lockkeeper.Item, fence uint64) (left lockkeeper.Item, found bool, err error) {
	for {
		page, err := r.Events(store.EventQuery{After: fence, Limit: eventPage})
		if err != nil {
			return it, false, err
		}
		for _, ev := range page {
			if left, found := q.ItemAfter(it, ev); found {
				return left, true, nil
			}
			fence = ev.Seq
		}
		if len(page) < eventPage {
			return it, false, nil
		}
	}
}
