package sched

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Job is a dispatched item in the hands of its worker.
type Job struct {
	Item  lockkeeper.Item // as the last transaction of a method left it
	Grant *lock.Grant

	q *Queue
}

// Note says how far the work has got, for whoever asks why others wait.
func (j *Job) Note(ctx context.Context, text string) error {
	return j.change(ctx, func(a *lock.Act, it *lockkeeper.Item) error {
		it.Note = bounded(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD"))
		return nil
	})
}

// change runs fn on the item while it is this worker's.
func (j *Job) change(ctx context.Context, fn func(*lock.Act, *lockkeeper.Item) error) error {
	var it *lockkeeper.Item
	err := j.q.locks.Within(ctx, func(a *lock.Act) (err error) {
		if it, err = j.own(a.Tx()); err != nil {
			return err
		}
		if err := fn(a, it); err != nil {
			return err
		}
		return a.Tx().SaveItem(it)
	})
	if err == nil {
		j.Item = *it
	}
	return err
}

// own finds the item, which must still be this worker's. The answer is a copy.
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

// Phase ends a phase and waits for the slots of the next one: the old ones are given
// back at once, the grant is kept. Lifecycles under way come before all others, by
// the rank of their phase.
func (j *Job) Phase(ctx context.Context, phase string, pools ...string) error {
	rank, known := RankOf(phase)
	if !known {
		return &lockkeeper.InputError{Field: "phase", Value: phase, Reason: "unknown phase", Next: "use one of " + PhaseNames()}
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
	bell, err := j.q.store.Listen(ctx, store.ItemWakeID(j.Item.ID))
	if err != nil {
		return err
	}
	defer bell.Close()
	err = j.change(ctx, func(a *lock.Act, it *lockkeeper.Item) error {
		if it.Stage == lockkeeper.StageRunning { // and has not given up waiting for the last one
			if err := giveSlots(a.Tx(), it.Pools); err != nil {
				return err
			}
		}
		roused := it.WokenBy
		it.Enter(lockkeeper.StageReady)
		it.Phase, it.Rank, it.Pools = phase, rank, needs
		if err := j.q.giveTurn(a.Tx(), it); err != nil {
			return err
		}
		return j.q.passOn(a.Tx(), it, roused)
	})
	if err != nil {
		return err
	}
	lost := j.Grant.Context()
	for {
		running, err := j.served(ctx)
		if err != nil || running {
			return err
		}
		select {
		case <-bell.Woken():
		case <-lost.Done():
			return context.Cause(lost)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// served serves those who wait for slots, and reports whether the item has its own.
func (j *Job) served(ctx context.Context) (running bool, err error) {
	var it *lockkeeper.Item
	err = j.q.locks.Within(ctx, func(a *lock.Act) (err error) {
		if _, err := j.q.take(a, nil, []string{"", j.Item.Root}); err != nil {
			return err
		}
		it, err = j.own(a.Tx())
		return err
	})
	if err != nil {
		return false, err
	}
	j.Item = *it
	return it.Stage == lockkeeper.StageRunning, nil
}

// settleTries bounds how often the end of an item waits for landings that keep
// coming.
const settleTries = 8

// Finish ends the item: completed, or with failure in the error state. What it held
// is given back in the same transaction, in which its worker, if there is one, claims
// the next item that can start. If Ended reports true after an error, the item has
// ended and only the claim of the next one failed.
func (j *Job) Finish(ctx context.Context, failure error, w *lockkeeper.Worker) (next *Job, err error) {
	var t taken
	err = j.release(ctx, func(a *lock.Act, it *lockkeeper.Item) (unsettled bool, err error) {
		t = taken{}
		if unsettled, err = j.q.end(a, it, failure); err != nil || unsettled || w == nil {
			return unsettled, err
		}
		t, err = j.q.take(a, w, w.TakesRoots())
		if t.item == nil { // it may have been the last that others wait for
			a.Tx().Wake(store.QueueWakeID)
		}
		return false, err
	})
	if err != nil {
		return nil, err
	}
	if t.more {
		return j.q.Claim(ctx, *w)
	}
	return j.q.job(t), nil
}

// Ended reports whether a method of this job has ended its attempt: Item is what became
// of it.
func (j *Job) Ended() bool {
	return j.Item.Status != lockkeeper.ItemDispatched || j.Item.GrantID != j.Grant.ID
}

// Return puts the item back into the queue, as if it had not been dispatched: somebody
// meant its worker to end.
func (j *Job) Return(ctx context.Context, reason string) error {
	return j.giveBack(ctx, reason, func(it *lockkeeper.Item) { it.Attempts-- })
}

// GiveUp returns the item to the queue as if it had not been dispatched to this node,
// whose copy of what it needs is behind.
func (j *Job) GiveUp(ctx context.Context, node string, behind error) error {
	return j.giveBack(ctx, behind.Error(), func(it *lockkeeper.Item) {
		it.Attempts--
		it.AvoidNode += " " + node
	})
}

func (j *Job) giveBack(ctx context.Context, reason string, change func(*lockkeeper.Item)) error {
	return j.release(ctx, func(a *lock.Act, it *lockkeeper.Item) (unsettled bool, err error) {
		if freed, err := a.Free(it.GrantID, lockkeeper.Event{Kind: lockkeeper.EventReleased, Actor: system, Reason: reason}); err != nil || freed == lock.LandingOpen {
			return true, err
		}
		change(it)
		return false, j.q.putBack(a, it, reason)
	})
}

// release runs a transaction on the item that gives the grant back. What is decided under
// it is brought to its end first.
func (j *Job) release(ctx context.Context, body func(*lock.Act, *lockkeeper.Item) (unsettled bool, err error)) error {
	return j.Grant.ReleaseBy(func() error {
		for range settleTries {
			unsettled := false
			var it *lockkeeper.Item
			err := j.q.locks.Within(ctx, func(a *lock.Act) (err error) {
				if it, err = j.own(a.Tx()); err != nil {
					return err
				}
				unsettled, err = body(a, it)
				return err
			})
			if err == nil && !unsettled {
				j.Item = *it
			}
			if err != nil || !unsettled {
				return err
			}
			if err := j.q.locks.RecoverLandings(ctx, j.Grant.ID); err != nil {
				return err
			}
		}
		return &lockkeeper.RefusedError{Act: "end of item " + j.Item.ID, Reason: "changes are being landed under it all the time", Next: "end what writes under it"}
	})
}

// end ends an item and frees what it had. One whose grant is gone is put back: what
// it did since then was not under its locks.
func (q *Queue) end(a *lock.Act, it *lockkeeper.Item, failure error) (unsettled bool, err error) {
	status := outcome(failure)
	if it.Failure != nil { // it was cancelled
		status = lockkeeper.ItemError
	}
	freed, err := a.Free(it.GrantID, lockkeeper.Event{Kind: lockkeeper.EventReleased, Data: map[string]string{statusKey: string(status)}})
	switch {
	case err != nil || freed == lock.LandingOpen:
		return true, err
	case freed == lock.FreedGone:
		return false, q.putBack(a, it, "its grant was lost while it ran")
	}
	if err := q.vacate(a.Tx(), it); err != nil {
		return false, err
	}
	if it.Failure != nil {
		return false, q.fail(a, it, *it.Failure)
	}
	if failure != nil {
		return false, q.fail(a, it, lockkeeper.Failure{Reason: bounded(failure.Error()), Attempts: it.Attempts})
	}
	roused := it.WokenBy // it may have given up waiting for the slots of its next phase
	setCompleted(it, a.Now().Wall)
	if err := a.Tx().SaveItem(it); err != nil {
		return false, err
	}
	if err := rouseAll(a.Tx(), store.OnItem(it.ID)); err != nil {
		return false, err
	}
	return false, q.passOn(a.Tx(), it, roused)
}

func outcome(failure error) lockkeeper.ItemStatus {
	if failure != nil {
		return lockkeeper.ItemError
	}
	return lockkeeper.ItemCompleted
}

// maxText bounds what an item keeps of an error or a note: it may quote what a command
// said.
const maxText = 2_000

func bounded(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// vacate gives back the slots that a dispatched item has taken.
func (q *Queue) vacate(tx store.Tx, it *lockkeeper.Item) error {
	taken := it.Caps
	if it.Stage == lockkeeper.StageRunning {
		taken = slots(it)
	}
	return giveSlots(tx, taken)
}

// rouseAll makes all that is parked on a key ready.
func rouseAll(tx store.Tx, key string) error {
	for {
		if more, err := store.WakeFirst(tx, key); err != nil || !more {
			return err
		}
	}
}

// fail puts an item into the error state, and passes on what it was roused by.
func (q *Queue) fail(a *lock.Act, it *lockkeeper.Item, why lockkeeper.Failure) error {
	why.Phase = it.Phase
	left, led, roused := it.WaitsOn, it.FirstSince != 0, it.WokenBy
	setFailed(it, why, a.Now().Wall)
	if err := a.Tx().SaveItem(it); err != nil {
		return err
	}
	if led {
		if err := store.StartFirst(a.Tx(), left); err != nil {
			return err
		}
	}
	if err := q.noteFailure(a, it); err != nil {
		return err
	}
	return q.passOn(a.Tx(), it, roused)
}

func (q *Queue) noteFailure(a *lock.Act, it *lockkeeper.Item) error {
	ev := leaving(lockkeeper.EventFailed, it)
	ev.Reason, ev.Conflicts = it.Failure.Reason, it.Failure.Conflicts
	_, err := a.Note(ev)
	return err
}

// putBack returns a dispatched item to the queue, where it keeps its place, or, when
// it has been tried often enough, to the error state.
func (q *Queue) putBack(a *lock.Act, it *lockkeeper.Item, reason string) error {
	if err := q.vacate(a.Tx(), it); err != nil {
		return err
	}
	it.GrantID, it.Worker, it.Note = "", "", "" // also of one that fails
	if it.Failure == nil && it.Attempts >= q.opt.MaxAttempts {
		it.Failure = &lockkeeper.Failure{Reason: reason, Attempts: it.Attempts}
	}
	if it.Failure != nil { // now, or because it was cancelled
		return q.fail(a, it, *it.Failure)
	}
	roused := it.WokenBy // it may have been waiting for the slots of its next phase
	setRequeued(it)
	if err := a.Tx().SaveItem(it); err != nil {
		return err
	}
	a.Tx().Wake(store.QueueWakeID)
	ev := leaving(lockkeeper.EventRequeued, it)
	ev.Reason = reason
	if _, err := a.Note(ev); err != nil {
		return err
	}
	return q.passOn(a.Tx(), it, roused)
}

// putBackStray puts an item back that its worker does not know of.
func (q *Queue) putBackStray(ctx context.Context, stray *lockkeeper.Item) error {
	return q.locks.Within(ctx, func(a *lock.Act) error {
		it, err := a.Tx().Item(stray.ID)
		if err != nil || it == nil || it.Status != lockkeeper.ItemDispatched || it.GrantID != stray.GrantID {
			return err
		}
		const reason = "its worker was never told that it had it"
		if freed, err := a.Free(it.GrantID, lockkeeper.Event{Kind: lockkeeper.EventReleased, Actor: system, Reason: reason}); err != nil || freed == lock.LandingOpen {
			return err
		}
		next := it.Clone()
		next.Attempts--
		return q.putBack(a, next, reason)
	})
}
