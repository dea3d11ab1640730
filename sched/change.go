package sched

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Retry returns an item from the error state to the queue. The item keeps the phase in
// which it failed, and comes after the items that are queued now.
func (q *Queue) Retry(ctx context.Context, name string, by lockkeeper.Actor) (*lockkeeper.Item, error) {
	var next *lockkeeper.Item
	err := q.locks.Update(ctx, func(tx *lock.Tx) error {
		it, err := find(tx, name)
		if err != nil {
			return err
		}
		if it.Status != lockkeeper.ItemError {
			return &lockkeeper.RefusedError{Act: "retry of " + it.ID, Reason: "it is " + word(it.Status), Next: "lockkeeper why " + it.ID}
		}
		if err := q.locks.Check(q.request(it, nil)); err != nil {
			return err // the item could never start
		}
		next = it.Clone()
		next.Status, next.Stage, next.Failure, next.CompletedAt = lockkeeper.ItemQueued, lockkeeper.StageReady, nil, time.Time{}
		next.Attempts, next.Retries, next.Blocked, next.Escalated, next.AvoidNode, next.Worker, next.GrantID = 0, 0, 0, false, "", "", ""
		next.Rank, _ = q.opt.Phases.Rank(next.Phase) // an escalated item has another rank
		open, err := unfinished(tx, next)
		if err != nil {
			return err
		}
		if open != "" {
			wait(next, store.OnItem(open))
		}
		if err := q.giveTurn(tx, next); err != nil {
			return err
		}
		if err := tx.SaveItem(next); err != nil {
			return err
		}
		tx.Wake(store.QueueWakeID)
		ev := leaving(lockkeeper.EventRequeued, next)
		ev.Actor, ev.Reason = by, "retried after: "+it.Failure.Reason
		_, err = tx.Append(ev)
		return err
	})
	return next, err
}

// cancelTries bounds how often Cancel tries to force-release the grant of an item that keeps
// changing.
const cancelTries = 10

// Cancel moves an item to the error state and ends it if it runs. Only a person or an
// administrator may end a running item. Cancel marks the item first, so that its end counts
// neither as a failure of the work nor as a lost worker.
func (q *Queue) Cancel(ctx context.Context, name string, by lockkeeper.Actor, reason string) (*lockkeeper.Item, error) {
	if reason == "" {
		reason = "no reason was given"
	}
	mayEnd := by.Kind == lockkeeper.ActorPerson || by.Kind == lockkeeper.ActorAdmin
	var refused error
	for range cancelTries {
		var next *lockkeeper.Item
		running := ""
		err := q.locks.Update(ctx, func(tx *lock.Tx) (err error) {
			next, running, err = q.cancel(tx, name, by, reason, mayEnd)
			return err
		})
		if err != nil || running == "" {
			return next, err
		}
		refused = q.locks.ForceRelease(ctx, running, by, "its item "+next.ID+" was canceled: "+reason)
		if code := lockkeeper.CodeOf(refused); refused != nil && code != lockkeeper.CodeNotHeld && (code != lockkeeper.CodeRefused || !mayEnd) {
			return nil, refused
		}
	}
	return nil, errors.Join(refused, &lockkeeper.RefusedError{Act: "cancel of " + name, Reason: "it is marked as canceled, but its grant could not be released", Next: "lockkeeper why " + name})
}

// cancel ends an item that does not run, or marks one that does. running is the grant of a
// running item.
func (q *Queue) cancel(tx *lock.Tx, name string, by lockkeeper.Actor, reason string, mayEnd bool) (next *lockkeeper.Item, running string, err error) {
	it, err := find(tx, name)
	if err != nil {
		return nil, "", err
	}
	next = it.Clone()
	failure := lockkeeper.Failure{Reason: lockkeeper.CanceledPrefix + by.Name + ": " + reason, Attempts: it.Attempts}
	switch it.Status {
	case lockkeeper.ItemError:
		if it.Failure.Reason == failure.Reason { // the item was marked and has ended meanwhile
			return next, "", nil
		}
		fallthrough
	case lockkeeper.ItemCompleted:
		return nil, "", &lockkeeper.RefusedError{Act: "cancel of " + it.ID, Reason: fmt.Sprintf("it %s at %s", word(it.Status), it.CompletedAt.UTC().Format("2006-01-02 15:04:05Z")), Next: "lockkeeper why " + it.ID}
	case lockkeeper.ItemDispatched:
		rec, err := tx.Get(it.GrantID)
		if err != nil {
			return nil, "", err
		}
		if rec != nil {
			if !mayEnd {
				return next, it.GrantID, nil // the engine refuses and records the attempt
			}
			next.Failure = &failure
			return next, it.GrantID, tx.SaveItem(next)
		}
		if err := q.freeSlots(tx, next); err != nil {
			return nil, "", err
		}
	default:
		if err := q.dropReservation(tx, next, lockkeeper.Event{Kind: lockkeeper.EventWithdrawn, Actor: by, Reason: reason}); err != nil {
			return nil, "", err
		}
	}
	return next, "", q.fail(tx, next, failure)
}

// word returns the word for a status that people read.
func word(s lockkeeper.ItemStatus) string {
	if s == lockkeeper.ItemError {
		return "failed"
	}
	return string(s)
}
