package sched

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// An attempt is one job of a worker, from its dispatch until its end is stored and reported.
type attempt struct {
	job  *Job
	item lockkeeper.Item // the item as it was dispatched

	mu       sync.Mutex // held while the end of the item is stored and reported
	reported bool
}

// maxEndRetry is the longest pause before a worker tries again to store the end of a job.
const maxEndRetry = 5 * time.Second

// storeEnd stores how an attempt ended and reports it. If the store fails, storeEnd retries
// until the store is back. If the worker is closed meanwhile, the lease of the grant expires
// and the item returns to the queue.
func (w *Worker) storeEnd(at *attempt, end func(context.Context) error) {
	w.retryEnd(at, func(ctx context.Context) error {
		err := end(ctx)
		switch {
		case err == nil || at.job.Ended(): // the end is stored; an error is about dispatching the next item
			w.reportEnd(at, at.job.Item)
			if err != nil {
				w.report(err)
			}
			return nil
		case lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld:
			return err
		}
		if err := at.job.Grant.Release(ctx); err != nil {
			w.report(err)
		}
		return w.reportLost(ctx, at)
	})
}

// retryEnd runs a step on an attempt until it succeeds or the worker is closed.
func (w *Worker) retryEnd(at *attempt, step func(context.Context) error) {
	ctx := context.WithoutCancel(w.work)
	for wait := 100 * time.Millisecond; ; wait = min(3*wait, maxEndRetry) {
		at.mu.Lock()
		err := step(ctx)
		at.mu.Unlock()
		switch {
		case err == nil:
			return
		case w.work.Err() != nil:
			err = fmt.Errorf("cannot store the end of item %s before the worker closes; it returns to the queue when its lease expires: %w", at.item.ID, err)
			at.job.Grant.Abandon(err)
			w.report(err)
			return
		}
		w.report(fmt.Errorf("cannot store the end of item %s, will retry: %w", at.item.ID, err))
		select {
		case <-time.After(wait): // a failing store does not signal when it is back
		case <-w.work.Done():
		}
	}
}

// reportEnd calls the OnEnd callback for an attempt, once. The caller holds at.mu.
func (w *Worker) reportEnd(at *attempt, it lockkeeper.Item) {
	if at.reported {
		return
	}
	at.reported = true
	if w.opt.OnEnd != nil {
		w.opt.OnEnd(it)
	}
}

// reportLost reports an attempt that another process or a tick ended: the grant was lost
// or the item was canceled. It reports the state in which the item was left then, even if
// the item has changed since. The caller holds at.mu.
func (w *Worker) reportLost(ctx context.Context, at *attempt) error {
	if at.reported {
		return nil
	}
	var left lockkeeper.Item
	var found bool
	err := w.q.store.View(ctx, func(r store.Reader) (err error) {
		left, found, err = w.q.departed(r, at.item, at.job.Grant.Fence)
		return err
	})
	if err != nil {
		return err
	}
	if !found {
		w.report(fmt.Errorf("the event log no longer records what became of attempt %d of item %s", at.item.Attempts, at.item.ID))
	}
	w.reportEnd(at, left)
	return nil
}

// enter registers an attempt. If this worker still has an earlier attempt of the same item,
// that attempt lost the item. enter reports it before the new attempt begins, so that the
// reports of an item come in order.
func (w *Worker) enter(job *Job) *attempt {
	at := &attempt{job: job, item: job.Item}
	var earlier []*attempt
	w.mu.Lock()
	for _, other := range w.running {
		if other.item.ID == at.item.ID {
			earlier = append(earlier, other)
		}
	}
	w.running[job.Grant.ID] = at
	w.mu.Unlock()
	for _, other := range earlier {
		w.retryEnd(other, func(ctx context.Context) error { return w.reportLost(ctx, other) })
	}
	return at
}

// exit removes an attempt that was reported.
func (w *Worker) exit(at *attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, at.job.Grant.ID)
}

// strayAfter is how long the store may assign an item to this worker that does not run
// here. Such an item is a stray: the response to the transaction that dispatched it was lost.
const strayAfter = time.Minute

// returnStrays returns strays to the queue.
func (w *Worker) returnStrays() error {
	active, err := w.q.Active(w.work)
	if err != nil {
		return err
	}
	seen := map[string]time.Time{}
	for _, it := range active {
		w.mu.Lock()
		_, runs := w.running[it.GrantID]
		w.mu.Unlock()
		if it.Worker != w.self.ID || runs {
			continue
		}
		first, known := w.strays[it.GrantID]
		if !known {
			first = time.Now()
		}
		seen[it.GrantID] = first
		if time.Since(first) >= strayAfter {
			err = errors.Join(err, w.q.requeueStray(w.work, it))
		}
	}
	w.strays = seen
	return err
}

// Keys in the data of events about items.
const (
	statusKey   = "status"   // in the event of a released grant: how its item ended
	attemptsKey = "attempts" // in the event of an item that left its worker: how often it was dispatched
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
	if it.GrantID = ev.GrantID; ev.GrantID == "" { // the item returned to the queue
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
