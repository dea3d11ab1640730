package sched

import (
	"context"
	"fmt"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

// Retry returns an item from the error state to the queue, at the phase in which it
// failed, and behind those that are queued by now.
func (q *Queue) Retry(ctx context.Context, name string, by lockkeeper.Actor) (*lockkeeper.Item, error) {
	var next *lockkeeper.Item
	err := q.locks.Within(ctx, func(a *lock.Act) error {
		it, err := find(a.Tx(), name)
		if err != nil {
			return err
		}
		if it.Status != lockkeeper.ItemError {
			return &lockkeeper.RefusedError{Act: "retry of " + it.ID, Reason: "it is " + string(it.Status), Next: "lockkeeper why " + it.ID}
		}
		if err := q.locks.Check(q.request(it, nil)); err != nil {
			return err // it could never start
		}
		next = it.Clone()
		next.Status, next.Stage, next.Failure, next.CompletedAt = lockkeeper.ItemQueued, lockkeeper.StageReady, nil, time.Time{}
		next.Attempts, next.Retries, next.Blocked, next.Escalated, next.Shuns, next.Worker, next.GrantID = 0, 0, 0, false, "", "", ""
		open, err := unfinished(a.Tx(), next)
		if err != nil {
			return err
		}
		if open != "" {
			park(next, lockkeeper.OnItem(open))
		}
		if err := q.giveTurn(a.Tx(), next); err != nil {
			return err
		}
		if err := a.Tx().SaveItem(next); err != nil {
			return err
		}
		a.Tx().Wake(lockkeeper.QueueBell)
		ev := about(lockkeeper.EventRequeued, next)
		ev.Actor, ev.Reason = by, "retried after: "+it.Failure.Reason
		_, err = a.Note(ev)
		return err
	})
	return next, err
}

// cancelTries bounds how often an item that is dispatched again and again is taken
// away from its worker.
const cancelTries = 5

// Cancel takes an item out of the queue, into the error state. A running one is ended
// first, which only a person or an administrator may ask for.
func (q *Queue) Cancel(ctx context.Context, name string, by lockkeeper.Actor, reason string) (*lockkeeper.Item, error) {
	if reason == "" {
		reason = "no reason was given"
	}
	for range cancelTries {
		var next *lockkeeper.Item
		running := ""
		err := q.locks.Within(ctx, func(a *lock.Act) error {
			it, err := find(a.Tx(), name)
			if err != nil {
				return err
			}
			next = it.Clone()
			switch it.Status {
			case lockkeeper.ItemCompleted, lockkeeper.ItemError:
				return &lockkeeper.RefusedError{Act: "cancel of " + it.ID, Reason: fmt.Sprintf("it is %s since %s", it.Status, it.CompletedAt.UTC().Format("2006-01-02 15:04:05Z")), Next: "lockkeeper why " + it.ID}
			case lockkeeper.ItemDispatched:
				rec, err := a.Tx().Get(it.GrantID)
				if err != nil || rec != nil {
					running = it.GrantID
					return err
				}
				if err := q.vacate(a.Tx(), next); err != nil {
					return err
				}
			default:
				if err := q.dropReservation(a, next, lockkeeper.Event{Kind: lockkeeper.EventWithdrawn, Actor: by, Reason: reason}); err != nil {
					return err
				}
			}
			if err := q.fail(a, next, lockkeeper.Failure{Reason: "cancelled by " + by.Name + ": " + reason, Attempts: next.Attempts}); err != nil {
				return err
			}
			return q.passOn(a.Tx(), next, it.RousedBy)
		})
		if err != nil || running == "" {
			return next, err
		}
		err = q.locks.ForceRelease(ctx, running, by, "its item "+next.ID+" was cancelled: "+reason)
		if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
			return nil, err
		}
	}
	return nil, &lockkeeper.RefusedError{Act: "cancel of " + name, Reason: "it is dispatched again and again", Next: "try once more"}
}
