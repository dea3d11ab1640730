package sched

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// An attempt is one job of a worker, from its claim until its end is stored and reported.
type attempt struct {
	job  *Job
	item lockkeeper.Item // as it was dispatched

	mu       sync.Mutex // held while its end is stored and reported
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
		case err == nil || at.job.Ended(): // the end is stored; an error is about claiming the next item
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
// here. Such an item is a stray: the response to the transaction that claimed it was lost.
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
