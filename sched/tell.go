package sched

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockkeeper"
)

// tellAgain is how long the end of a job waits at most before it is told again to a
// store that fails.
const tellAgain = 5 * time.Second

// tell tells the store how a job ended: now, or, when that fails, when the store is back.
// A worker that is closed meanwhile leaves the job to its lease, which nobody renews then.
func (w *Worker) tell(job *Job, end func(context.Context) error) {
	ctx := context.WithoutCancel(w.work)
	for wait := 100 * time.Millisecond; ; wait = min(3*wait, tellAgain) {
		err := end(ctx)
		switch {
		case err == nil:
			if w.opt.Ended != nil {
				w.opt.Ended(job.Item)
			}
			return
		case lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld: // somebody else has the item, or ended it
			if err := job.Grant.Release(ctx); err != nil {
				w.trouble(err)
			}
			w.lost(ctx, job, err)
			return
		case w.work.Err() != nil:
			err = fmt.Errorf("item %s is left to its lease: %w", job.Item.ID, err)
			job.Grant.Abandon(err)
			w.trouble(err)
			return
		}
		w.trouble(fmt.Errorf("the end of item %s could not be stored, and will be: %w", job.Item.ID, err))
		select {
		case <-time.After(wait): // a store that fails rings no bell
		case <-w.work.Done():
		}
	}
}

// lost tells what became of an item that is not this worker's any more.
func (w *Worker) lost(ctx context.Context, job *Job, why error) {
	if w.opt.Ended == nil {
		w.trouble(why)
		return
	}
	err := w.q.store.View(ctx, func(r lockkeeper.Reader) error {
		now, err := r.Item(job.Item.ID)
		if now != nil {
			job.Item = *now
		}
		return err
	})
	if err != nil {
		w.trouble(errors.Join(why, err))
		return
	}
	w.opt.Ended(job.Item)
}

// strayAfter is how long an item may be this worker's in the store without running
// here: it was claimed in a transaction whose answer got lost.
const strayAfter = time.Minute

// returnStrays puts such items back.
func (w *Worker) returnStrays() error {
	active, err := w.q.Active(w.work)
	if err != nil {
		return err
	}
	seen := map[string]time.Time{}
	for _, it := range active {
		w.mu.Lock()
		_, runs := w.running[it.ID]
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
			err = errors.Join(err, w.q.putBackStray(w.work, it))
		}
	}
	w.strays = seen
	return err
}
