package sched

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// WorkerOptions says who works, and how.
type WorkerOptions struct {
	Slots   int // how many items at once
	Node    string
	Process *lockkeeper.Process // who is recorded behind the grants; nil: leases alone count
	Roots   []string            // what this node reaches
	Only    bool                // it takes items of its roots alone, none that every node may run

	// Run does the work of an item. Its context ends when the item's grant is lost or
	// the worker is closed. An error puts the item into the error state; so does a
	// panic.
	Run func(context.Context, *Job) error

	// Fresh reports, before an item is run, an error when this node's copy of what the
	// item locks is behind. Nil: it never is.
	CheckFresh func(context.Context, *lockkeeper.Item) error

	// Paused lets the worker begin with a pause, which Resume ends.
	Paused bool

	// UntilEmpty lets the worker end when nothing is queued or runs.
	UntilEmpty bool

	// Ended is called once for each attempt of this worker, after the transaction that
	// ended it has committed, with the item as that transaction left it: completed, in
	// the error state, or queued again. The transaction may be another process's, and
	// the item may have another state by the time of the call. The calls for one item
	// come in the order of its attempts. Optional.
	OnEnd func(lockkeeper.Item)

	// TickEvery is how often the worker looks for what others left, besides when
	// something is due. Default 5 s.
	TickEvery time.Duration

	// Trouble hears of errors that the worker survives. Nil: nobody does.
	OnError func(error)
}

// workerLease is how long a worker that gives no sign of life is listed as alive.
const workerLease = time.Minute

// Worker runs the items of a queue.
type Worker struct {
	q    *Queue
	opt  WorkerOptions
	self lockkeeper.Worker

	work    context.Context // of the items; ends with Close
	cancel  context.CancelCauseFunc
	quit    chan struct{} // closed by Stop: nothing new is claimed
	stop    sync.Once
	loop    sync.WaitGroup
	free    chan struct{} // a slot was given back
	err     error         // of the loop; read after loop.Wait
	paused  atomic.Bool   // nothing is claimed
	resumed chan struct{} // it was resumed

	strays map[string]time.Time // by grant: since when an item is in the store as this worker's, and not here; the loop's

	mu      sync.Mutex
	running map[string]*attempt // by grant
	jobs    sync.WaitGroup
}

// Start begins to work through the queue. It goes on with what it finds there.
func (q *Queue) Start(ctx context.Context, opt WorkerOptions) (*Worker, error) {
	switch {
	case opt.Slots < 1:
		return nil, &lockkeeper.InputError{Field: "slots", Value: fmt.Sprint(opt.Slots), Reason: "a worker without slots does nothing", Next: "give at least one"}
	case opt.Run == nil:
		return nil, &lockkeeper.InputError{Field: "run", Reason: "nothing to do with an item"}
	}
	if opt.TickEvery <= 0 {
		opt.TickEvery = 5 * time.Second
	}
	if opt.OnError == nil {
		opt.OnError = func(error) {}
	}
	w := &Worker{q: q, opt: opt, quit: make(chan struct{}), free: make(chan struct{}, opt.Slots), resumed: make(chan struct{}, 1), running: map[string]*attempt{}}
	w.self = lockkeeper.Worker{ID: opt.Node + "/" + rand.Text()[:12], Node: opt.Node, Process: opt.Process, Roots: opt.Roots, Only: opt.Only, Slots: opt.Slots}
	w.paused.Store(opt.Paused)
	w.work, w.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	listener, err := q.store.Listen(ctx, store.QueueWakeID)
	if err != nil {
		return nil, err
	}
	if err := w.register(ctx); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	w.loop.Go(func() {
		w.err = errors.Join(w.serve(listener.Woken()), listener.Close())
	})
	return w, nil
}

// register tells the space of this worker, and that it is alive.
func (w *Worker) register(ctx context.Context) error {
	return w.q.store.Update(ctx, func(tx store.Tx) error {
		self := w.self
		if self.Began.IsZero() {
			self.Began = tx.Now().Wall
		}
		self.Expires = tx.Now().Lease.Add(workerLease)
		w.self.Began = self.Began
		return tx.PutWorker(self)
	})
}

// ID names the worker in the items that it runs.
func (w *Worker) ID() string { return w.self.ID }

var errClosed = errors.New("the worker was closed")

// serve claims while slots are free, and ticks, until it is told to stop. Trouble with
// the store does not end it: the queue is there when the store is.
func (w *Worker) serve(woken <-chan struct{}) error {
	free, quit := w.opt.Slots, w.quit
	tick := time.NewTimer(0)
	defer tick.Stop()
	for look := true; ; {
		if quit == nil && free == w.opt.Slots {
			return w.leave()
		}
		if look && free > 0 && quit != nil && !w.paused.Load() {
			n, err := w.claim(free)
			if err != nil {
				w.report(err)
			}
			free -= n
		}
		if look && w.opt.UntilEmpty && free == w.opt.Slots && quit != nil {
			if empty, err := w.isEmpty(); err != nil {
				w.report(err)
			} else if empty {
				return w.leave()
			}
		}
		look = false
		select {
		case <-quit:
			quit = nil // and goes on to tick until what runs has ended
		case <-w.free:
			free++
			look = true
		case <-woken:
			look = true
		case <-w.resumed:
			look = true
		case <-tick.C:
			tick.Reset(w.tick())
			look = true
		}
	}
}

// claim starts what can start, up to n, and returns how many that were.
func (w *Worker) claim(n int) (started int, err error) {
	for started < n {
		var some bool
		err := w.q.store.View(w.work, func(r store.Reader) error { // most often nothing is ready, and looking is cheaper
			it, err := first(r, w.self.TakesRoots())
			some = it != nil
			return err
		})
		if err != nil || !some {
			return started, err
		}
		job, err := w.q.Dispatch(w.work, w.self)
		if err != nil || job == nil {
			return started, err
		}
		w.begin(job)
		started++
	}
	return started, nil
}

// isEmpty reports whether nothing can come any more: nothing runs anywhere, and what
// is queued waits for something that failed.
func (w *Worker) isEmpty() (empty bool, err error) {
	err = w.q.store.View(w.work, func(r store.Reader) error {
		c, err := r.Census()
		if err != nil || c.Running > 0 || c.Ready > 0 {
			return err
		}
		if c.Waiting == 0 {
			empty = true
			return nil
		}
		empty, err = onlyStuck(r)
		return err
	})
	return empty, err
}

// onlyStuck reports whether all that is parked waits for items in the error state.
func onlyStuck(r store.Reader) (bool, error) {
	keys, err := r.WaitKeys("")
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(keys, func(key string) bool { return key < store.OnItem("") || key > store.OnItem("\xff") }), nil
}

// begin runs a job, and what the worker claims when that ends, in a goroutine.
func (w *Worker) begin(job *Job) {
	w.jobs.Go(func() {
		defer func() { w.free <- struct{}{} }()
		for job != nil {
			job = w.run(job)
		}
	})
}

// run runs one job and returns the next, which was claimed in the transaction that
// ended it; nil: none.
func (w *Worker) run(job *Job) *Job {
	job.Grant.Keep()
	at := w.enter(job)
	defer w.exit(at)
	ctx, cancel := context.WithCancelCause(job.Grant.Context())
	defer cancel(nil)
	stop := context.AfterFunc(w.work, func() { cancel(errClosed) })
	defer stop()
	told := false
	defer func() {
		if !told { // the work has ended its goroutine
			w.storeEnd(at, func(ctx context.Context) error {
				_, err := job.Finish(ctx, errors.New("the work ended its goroutine"), nil)
				return err
			})
		}
	}()
	if w.opt.CheckFresh != nil {
		if err := guard(func() error { return w.opt.CheckFresh(ctx, &job.Item) }); err != nil {
			w.report(err)
			told = true
			w.storeEnd(at, func(ctx context.Context) error { return job.ReturnFrom(ctx, w.opt.Node, err) })
			return nil
		}
	}
	failure := guard(func() error { return w.opt.Run(ctx, job) })
	told = true
	var later *LaterError
	switch {
	case failure != nil && w.work.Err() != nil: // the work did not fail: it was ended
		w.storeEnd(at, func(ctx context.Context) error { return job.Return(ctx, errClosed.Error()) })
		return nil
	case errors.As(failure, &later):
		w.storeEnd(at, func(ctx context.Context) error { return job.Return(ctx, later.Reason) })
		return nil
	}
	claimant := &w.self
	select {
	case <-w.quit:
		claimant = nil
	default:
		if w.paused.Load() {
			claimant = nil
		}
	}
	var next *Job
	w.storeEnd(at, func(ctx context.Context) (err error) {
		next, err = job.Finish(ctx, failure, claimant)
		return err
	})
	return next
}

// LaterError is how the work of an item says that it did not fail, and has to be done
// at another time: the item goes back to its place in the queue.
type LaterError struct{ Reason string }

func (e *LaterError) Error() string { return "put back: " + e.Reason }

// Pause lets the worker claim nothing until Resume. What runs goes on.
func (w *Worker) Pause() { w.paused.Store(true) }

// Paused reports whether the worker claims nothing for now.
func (w *Worker) Paused() bool { return w.paused.Load() }

// Resume ends a pause.
func (w *Worker) Resume() {
	if w.paused.Swap(false) {
		select {
		case w.resumed <- struct{}{}:
		default: // it is about to look
		}
	}
}

// guard turns a panic of a job's work into an error of that job alone.
func guard(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return work()
}

// trouble tells of an error that the worker survives. That it was closed is none.
func (w *Worker) report(err error) {
	if !errors.Is(err, errClosed) {
		w.opt.OnError(err)
	}
}

// tick does what is due and returns when to tick again.
func (w *Worker) tick() time.Duration {
	if err := w.register(w.work); err != nil {
		w.report(err)
	}
	next, err := w.q.Tick(w.work)
	if err == nil {
		err = w.returnStrays()
	}
	if err != nil {
		w.report(err)
	}
	if next == 0 {
		return w.opt.TickEvery
	}
	return min(next, w.opt.TickEvery)
}

// leave takes the worker out of the list of those alive.
func (w *Worker) leave() error {
	w.jobs.Wait() // which have given their slots back
	return w.q.store.Update(context.WithoutCancel(w.work), func(tx store.Tx) error { return tx.DeleteWorker(w.self.ID) })
}

// Wait returns when the worker has ended: stopped, or, if it was to, with nothing left
// to do.
func (w *Worker) Wait() error {
	w.loop.Wait()
	w.cancel(errClosed)
	return w.err
}

// Stop claims nothing more and waits for what runs, until ctx ends: then it returns
// what still does, and that goes on. Queued items stay queued.
func (w *Worker) Stop(ctx context.Context) (still []lockkeeper.Item, err error) {
	w.stop.Do(func() { close(w.quit) })
	ended := make(chan struct{})
	go func() { // ends with the work, which Close ends
		w.loop.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil, w.Wait()
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.running {
		still = append(still, at.item)
	}
	slices.SortFunc(still, func(a, b lockkeeper.Item) int { return lockkeeper.CompareItems(&a, &b) })
	return still, context.Cause(ctx)
}

// Close stops the worker, ends what runs, and waits for it.
func (w *Worker) Close() error {
	w.stop.Do(func() { close(w.quit) })
	w.cancel(errClosed)
	return w.Wait()
}
