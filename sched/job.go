package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// A Job is a worker's handle of an item that was dispatched to it.
type Job struct {
	Item  lockkeeper.Item // the item as the last method of the job left it
	Grant *lock.Grant

	q     *Queue
	rests func() <-chan struct{} // returns a channel that is closed while the worker starts nothing; nil: it never rests
}

// Note stores the progress of the work, for people who ask why other items wait.
func (j *Job) Note(ctx context.Context, text string) error {
	return j.change(ctx, func(tx *lock.Tx, it *lockkeeper.Item) error {
		it.Note = bounded(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD"))
		return nil
	})
}

// change runs fn on the item, if it still belongs to this worker.
func (j *Job) change(ctx context.Context, fn func(*lock.Tx, *lockkeeper.Item) error) error {
	var it *lockkeeper.Item
	err := j.q.locks.Update(ctx, func(tx *lock.Tx) (err error) {
		if it, err = j.own(tx); err != nil {
			return err
		}
		if err := fn(tx, it); err != nil {
			return err
		}
		return tx.SaveItem(it)
	})
	if err == nil {
		j.Item = *it
	}
	return err
}

// own returns a copy of the item, which must still belong to this worker.
func (j *Job) own(r store.Reader) (*lockkeeper.Item, error) {
	it, err := r.Item(j.Item.ID)
	if err != nil {
		return nil, err
	}
	if it == nil || it.Status != lockkeeper.ItemDispatched || it.GrantID != j.Grant.ID {
		return nil, errLost(&j.Item)
	}
	return it.Clone(), nil
}

// ReturnSlots returns the slots of the item and keeps the grant. The same transaction gives them to
// the next dispatched item that waits for them. Phase acquires slots again.
func (j *Job) ReturnSlots(ctx context.Context) error {
	return j.change(ctx, func(tx *lock.Tx, it *lockkeeper.Item) error {
		free := heldSlots(it)
		if it.Stage != lockkeeper.StageRunning || len(free) == 0 {
			return nil
		}
		it.Enter(lockkeeper.StageCollecting)
		if err := errors.Join(tx.SaveItem(it), returnSlots(tx, free)); err != nil {
			return err
		}
		_, err := j.q.take(tx, nil, j.roots())
		return err
	})
}

// roots returns the roots whose dispatched items a transaction of the job serves.
func (j *Job) roots() []string { return slices.Compact([]string{"", j.Item.Root}) }

// Phase ends a phase and waits for the slots of the next one. It returns the old slots at
// once and keeps the grant. Dispatched items come before queued ones, by the rank of their
// phase. If the item waits for its first slots and the worker is paused or stopped, Phase returns a
// LaterError, because nothing may start.
func (j *Job) Phase(ctx context.Context, phase string, pools ...string) error {
	rank, known := j.q.opt.Phases.Rank(phase)
	if !known {
		return &lockkeeper.InputError{Field: "phase", Value: phase, Reason: "unknown phase", Next: "use one of " + j.q.opt.Phases.String()}
	}
	needs, err := poolsOf(pools)
	if err != nil {
		return err
	}
	policy, err := j.q.locks.Policy(j.Item.Policy)
	if err != nil {
		return err
	}
	if policy.Operation {
		return &lockkeeper.RefusedError{Act: "another phase of " + j.Item.ID, Reason: fmt.Sprintf("policy %q holds locks for one operation, and not while it waits for a slot", policy.Name),
			Next: "queue each step as an item of its own"}
	}
	listener, err := j.q.store.Listen(ctx, store.ItemWakeID(j.Item.ID))
	if err != nil {
		return err
	}
	defer listener.Close()
	var first bool // the item holds a slot of PoolPrepare
	err = j.change(ctx, func(tx *lock.Tx, it *lockkeeper.Item) error {
		held := heldSlots(it)
		first = it.Stage != lockkeeper.StageRunning && len(held) > 0 && slices.Contains(needs, PoolAgent)
		if !first {
			if err := returnSlots(tx, held); err != nil {
				return err
			}
		}
		wokenBy := it.WokenBy
		it.Enter(lockkeeper.StageReady)
		it.Phase, it.Rank, it.Pools = phase, rank, needs
		if first {
			it.Pools = append(slices.Clone(needs), PoolPrepare)
		}
		if !first { // else it keeps its place in the queue
			if err := j.q.giveTurn(tx, it); err != nil {
				return err
			}
		}
		return j.q.wakeNext(tx, it, wokenBy)
	})
	if err != nil {
		return err
	}
	var rests <-chan struct{}
	if first && j.rests != nil {
		rests = j.rests()
	}
	lost := j.Grant.Context()
	for {
		select {
		case <-rests:
			return &LaterError{"the worker starts nothing now"}
		default:
		}
		running, err := j.serveWaiting(ctx)
		if err != nil || running {
			return err
		}
		select {
		case <-listener.Woken():
		case <-rests:
		case <-lost.Done():
			return context.Cause(lost)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// serveWaiting serves the items that wait for slots, and reports whether this item has its
// own.
func (j *Job) serveWaiting(ctx context.Context) (running bool, err error) {
	it, err := store.Read(ctx, j.q.store, j.own)
	if err == nil && it.Stage == lockkeeper.StageReady {
		err = j.q.locks.Update(ctx, func(tx *lock.Tx) (err error) {
			if _, err := j.q.take(tx, nil, j.roots()); err != nil {
				return err
			}
			it, err = j.own(tx)
			return err
		})
	}
	if err != nil {
		return false, err
	}
	j.Item = *it
	return it.Stage == lockkeeper.StageRunning, nil
}

// Finish completes the item, or moves it to the error state if failure is not nil. The same
// transaction releases its locks and slots and, if w is not nil, dispatches the next item
// to w. If Ended reports true after an error, the item has ended and only the dispatch of
// the next one failed.
func (j *Job) Finish(ctx context.Context, failure error, w *lockkeeper.Worker) (next *Job, err error) {
	var t taken
	err = j.release(ctx, func(tx *lock.Tx, it *lockkeeper.Item) (landingOpen bool, err error) {
		t = taken{}
		if landingOpen, err = j.q.end(tx, it, failure); err != nil || landingOpen || w == nil {
			return landingOpen, err
		}
		t, err = j.q.take(tx, w, w.TakesRoots())
		if t.item == nil { // items may wait for the completed one
			tx.Wake(store.QueueWakeID)
		}
		return false, err
	})
	if err != nil {
		return nil, err
	}
	if t.more {
		return j.q.Dispatch(ctx, *w)
	}
	return j.q.job(t), nil
}

// Ended reports whether a method of this job has ended its attempt. Item is the result.
func (j *Job) Ended() bool {
	return j.Item.Status != lockkeeper.ItemDispatched || j.Item.GrantID != j.Grant.ID
}

// Return returns the item to the queue as if it had not been dispatched, because its worker
// stops.
func (j *Job) Return(ctx context.Context, reason string) error {
	return j.requeueAs(ctx, reason, func(it *lockkeeper.Item) { it.Attempts-- })
}

// ReturnFrom returns the item to the queue for other nodes, because the copy of this node is
// behind.
func (j *Job) ReturnFrom(ctx context.Context, node string, behind error) error {
	return j.requeueAs(ctx, behind.Error(), func(it *lockkeeper.Item) {
		it.Attempts--
		it.AvoidNode += " " + node
	})
}

func (j *Job) requeueAs(ctx context.Context, reason string, change func(*lockkeeper.Item)) error {
	return j.release(ctx, func(tx *lock.Tx, it *lockkeeper.Item) (landingOpen bool, err error) {
		if freed, err := tx.Free(it.GrantID, lockkeeper.Event{Kind: lockkeeper.EventReleased, Actor: system, Reason: reason}); err != nil || freed == lock.LandingOpen {
			return true, err
		}
		change(it)
		return false, j.q.requeue(tx, it, reason)
	})
}

// release runs a transaction that releases the grant of the item. If a landing is open under
// the grant, it recovers the landing and tries again.
func (j *Job) release(ctx context.Context, body func(*lock.Tx, *lockkeeper.Item) (landingOpen bool, err error)) error {
	return j.Grant.ReleaseBy(func() error {
		return j.q.locks.RetryRecovered(ctx, j.Grant.ID, "end of item "+j.Item.ID, func() (landingOpen bool, err error) {
			var it *lockkeeper.Item
			err = j.q.locks.Update(ctx, func(tx *lock.Tx) (err error) {
				if it, err = j.own(tx); err != nil {
					return err
				}
				landingOpen, err = body(tx, it)
				return err
			})
			if err == nil && !landingOpen {
				j.Item = *it
			}
			return landingOpen, err
		})
	})
}

// end ends an item and frees its locks and slots. An item whose grant is gone returns to the
// queue, because its later work was not protected by locks.
func (q *Queue) end(tx *lock.Tx, it *lockkeeper.Item, failure error) (landingOpen bool, err error) {
	status := lockkeeper.ItemCompleted
	if failure != nil || it.Failure != nil { // a set Failure means that the item was canceled
		status = lockkeeper.ItemError
	}
	freed, err := tx.Free(it.GrantID, lockkeeper.Event{Kind: lockkeeper.EventReleased, Data: map[string]string{statusKey: string(status)}})
	switch {
	case err != nil || freed == lock.LandingOpen:
		return true, err
	case freed == lock.FreedGone:
		return false, q.requeue(tx, it, "its grant was lost while it ran")
	}
	if err := q.freeSlots(tx, it); err != nil {
		return false, err
	}
	if it.Failure != nil {
		return false, q.fail(tx, it, *it.Failure)
	}
	if failure != nil {
		return false, q.fail(tx, it, lockkeeper.Failure{Reason: bounded(failure.Error()), Attempts: it.Attempts})
	}
	wokenBy := it.WokenBy // the wait for the next phase may have been canceled
	setCompleted(it, tx.Now().Wall)
	if err := tx.SaveItem(it); err != nil {
		return false, err
	}
	if err := wakeAll(tx, store.OnItem(it.ID)); err != nil {
		return false, err
	}
	return false, q.wakeNext(tx, it, wokenBy)
}

// maxText bounds the length of an error or a note, which may quote the output of a command.
const maxText = 2_000

func bounded(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

func (q *Queue) freeSlots(tx store.Tx, it *lockkeeper.Item) error {
	taken := slices.Concat(it.Caps, heldSlots(it))
	it.Pools = phasePools(it)
	return returnSlots(tx, taken)
}

func wakeAll(tx store.Tx, key string) error {
	for {
		if more, err := store.WakeFirst(tx, key); err != nil || !more {
			return err
		}
	}
}

// fail moves an item to the error state, and wakes the next item on the key that woke it.
func (q *Queue) fail(tx *lock.Tx, it *lockkeeper.Item, why lockkeeper.Failure) error {
	why.Phase = it.Phase
	left, led, wokenBy := it.WaitsOn, it.FirstSince != 0, it.WokenBy
	setFailed(it, why, tx.Now().Wall)
	if err := tx.SaveItem(it); err != nil {
		return err
	}
	if led {
		if err := store.StartFirst(tx, left); err != nil {
			return err
		}
	}
	if err := q.noteFailure(tx, it); err != nil {
		return err
	}
	return q.wakeNext(tx, it, wokenBy)
}

func (q *Queue) noteFailure(tx *lock.Tx, it *lockkeeper.Item) error {
	ev := leaving(lockkeeper.EventFailed, it)
	ev.Reason, ev.Conflicts = it.Failure.Reason, it.Failure.Conflicts
	_, err := tx.Append(ev)
	return err
}

// requeue returns a dispatched item to its place in the queue or, after MaxAttempts, moves it
// to the error state.
func (q *Queue) requeue(tx *lock.Tx, it *lockkeeper.Item, reason string) error {
	if err := q.freeSlots(tx, it); err != nil {
		return err
	}
	it.GrantID, it.Worker, it.Note = "", "", "" // cleared even if the item fails below
	if it.Failure == nil && it.Attempts >= q.opt.MaxAttempts {
		it.Failure = &lockkeeper.Failure{Reason: reason, Attempts: it.Attempts}
	}
	if it.Failure != nil { // the item had too many attempts, or was canceled
		return q.fail(tx, it, *it.Failure)
	}
	wokenBy := it.WokenBy // the item may have waited for the slots of its next phase
	setRequeued(it)
	if err := tx.SaveItem(it); err != nil {
		return err
	}
	tx.Wake(store.QueueWakeID)
	ev := leaving(lockkeeper.EventRequeued, it)
	ev.Reason = reason
	if _, err := tx.Append(ev); err != nil {
		return err
	}
	return q.wakeNext(tx, it, wokenBy)
}

// requeueStray returns an item to the queue that its worker does not know.
func (q *Queue) requeueStray(ctx context.Context, stray *lockkeeper.Item) error {
	return q.locks.Update(ctx, func(tx *lock.Tx) error {
		it, err := tx.Item(stray.ID)
		if err != nil || it == nil || it.Status != lockkeeper.ItemDispatched || it.GrantID != stray.GrantID {
			return err
		}
		const reason = "its worker did not learn that it was dispatched"
		if freed, err := tx.Free(it.GrantID, lockkeeper.Event{Kind: lockkeeper.EventReleased, Actor: system, Reason: reason}); err != nil || freed == lock.LandingOpen {
			return err
		}
		next := it.Clone()
		next.Attempts--
		return q.requeue(tx, next, reason)
	})
}
