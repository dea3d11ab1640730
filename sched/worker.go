package sched

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// WorkerOptions are the options of a Worker.
type WorkerOptions struct {
	Slots   int // how many items run at once
	Node    string
	Process *lockkeeper.Process // recorded with the grants; nil: only leases count
	Roots   []string            // the roots that the worker's node has
	Only    bool                // run only items of these roots, and none without a root

	// Run does the work of an item. Its context ends when the item's grant is lost or
	// the worker is closed. An error or a panic moves the item to the error state.
	Run func(context.Context, *Job) error

	// Ahead lets the worker prepare items before they have the slot of an agent: it dispatches an
	// item that needs one with its locks and a slot of PoolPrepare, and Run asks for the agent's
	// with Job.Phase when all is prepared.
	Ahead bool

	// CheckFresh returns an error if this node's copy of the locked files is behind. It is
	// called before Run. Optional.
	CheckFresh func(context.Context, *lockkeeper.Item) error

	// Paused starts the worker paused, until Resume.
	Paused bool

	// UntilEmpty ends the worker when no item is queued or running.
	UntilEmpty bool

	// OnEnd is called once for each attempt of this worker, after the transaction that
	// ended it has committed, with the item as that transaction left it: completed, in
	// the error state, or queued again. The transaction may be another process's, and
	// the item may have another state by the time of the call. The calls for one item
	// come in the order of its attempts. Optional.
	OnEnd func(lockkeeper.Item)

	// TickEvery is the longest time between two ticks. The default is 5 s.
	TickEvery time.Duration

	// OnError is called with errors that do not end the worker. Optional.
	OnError func(error)
}

// workerLease is how long a worker counts as alive after its last tick.
const workerLease = time.Minute

// A Worker runs the items of a queue.
type Worker struct {
	q    *Queue
	opt  WorkerOptions
	self lockkeeper.Worker

	work   context.Context // context of the items; ends with Close
	cancel context.CancelCauseFunc
	quit   chan struct{} // closed by Stop: nothing new starts
	stop   sync.Once
	loop   sync.WaitGroup
	free   chan struct{} // a slot became free
	err    error         // error of the loop; read after loop.Wait
	paused atomic.Bool   // a paused worker dispatches nothing
	turned chan struct{} // signals that the worker was paused or resumed
	rest   rest

	// strays has, by grant, the time at which the loop first saw a stray. Only the loop uses it.
	strays map[string]time.Time

	mu      sync.Mutex
	running map[string]*attempt // by grant
	jobs    sync.WaitGroup
}

// Start starts a worker on the queue.
func (q *Queue) Start(ctx context.Context, opt WorkerOptions) (*Worker, error) {
	switch {
	case opt.Slots < 1:
		return nil, &lockkeeper.InputError{Field: "slots", Value: fmt.Sprint(opt.Slots), Reason: "a worker without slots does nothing", Next: "give at least one"}
	case opt.Run == nil:
		return nil, &lockkeeper.InputError{Field: "run", Reason: "missing: the function that runs an item"}
	}
	if opt.TickEvery <= 0 {
		opt.TickEvery = 5 * time.Second
	}
	if opt.OnError == nil {
		opt.OnError = func(error) {}
	}
	w := &Worker{q: q, opt: opt, quit: make(chan struct{}), free: make(chan struct{}, opt.Slots), turned: make(chan struct{}, 1), running: map[string]*attempt{}}
	w.self = lockkeeper.Worker{ID: opt.Node + "/" + rand.Text()[:12], Node: opt.Node, Process: opt.Process, Roots: opt.Roots, Only: opt.Only, Slots: opt.Slots, Ahead: opt.Ahead, Pools: q.opt.Limits.pools()}
	w.paused.Store(opt.Paused)
	w.rest.set(opt.Paused)
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

// register stores this worker as alive.
func (w *Worker) register(ctx context.Context) error {
	return w.q.store.Update(ctx, func(tx store.Tx) error {
		self := w.self
		if self.Began.IsZero() {
			self.Began = tx.Now().Wall
		}
		self.Expires = tx.Now().Lease.Add(workerLease)
		w.self.Began = self.Began
		self.Paused = w.paused.Load() || w.stopping()
		return tx.PutWorker(self)
	})
}

// stopping reports whether Stop or Close was called.
func (w *Worker) stopping() bool {
	select {
	case <-w.quit:
		return true
	default:
		return false
	}
}

// ID returns the id that the items of this worker carry.
func (w *Worker) ID() string { return w.self.ID }

var errClosed = errors.New("the worker was closed")

// serve dispatches items while slots are free, and ticks, until it is stopped. Errors of the
// store do not end it.
func (w *Worker) serve(woken <-chan struct{}) error {
	free, quit := w.opt.Slots, w.quit
	tick := time.NewTimer(0)
	defer tick.Stop()
	for examine := true; ; {
		if quit == nil && free == w.opt.Slots {
			return w.leave()
		}
		if examine && free > 0 && quit != nil && !w.paused.Load() {
			n, err := w.dispatch(free)
			if err != nil {
				w.report(err)
			}
			free -= n
		}
		if examine && w.opt.UntilEmpty && free == w.opt.Slots && quit != nil {
			if empty, err := w.isEmpty(); err != nil {
				w.report(err)
			} else if empty {
				return w.leave()
			}
		}
		examine = false
		select {
		case <-quit:
			quit = nil // the worker ticks until the running items have ended
			if free < w.opt.Slots {
				tick.Reset(0) // stores that the worker starts nothing
			}
		case <-w.free:
			free++
			examine = true
		case <-woken:
			examine = true
		case <-w.turned:
			examine = true
			if err := w.register(w.work); err != nil {
				w.report(err)
			}
		case <-tick.C:
			tick.Reset(w.tick())
			examine = true
		}
	}
}

// dispatch starts up to n items and returns how many it started.
func (w *Worker) dispatch(n int) (started int, err error) {
	for started < n {
		// Usually nothing is ready, and a View is cheaper.
		it, err := store.Read(w.work, w.q.store, func(r store.Reader) (*lockkeeper.Item, error) { return first(r, w.self.TakesRoots()) })
		if err != nil || it == nil {
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

// isEmpty reports whether no item can start any more: none runs anywhere, and the queued ones
// wait for items that failed.
func (w *Worker) isEmpty() (bool, error) {
	return store.Read(w.work, w.q.store, func(r store.Reader) (bool, error) {
		c, err := r.Census()
		if err != nil || c.Running > 0 || c.Ready > 0 || c.Waiting == 0 {
			return err == nil && c.Running == 0 && c.Ready == 0, err
		}
		keys, err := r.WaitKeys("")
		return err == nil && !slices.ContainsFunc(keys, func(key string) bool { return !strings.HasPrefix(key, store.OnItem("")) }), err
	})
}

// begin runs a job, and the jobs that follow it, in a goroutine.
func (w *Worker) begin(job *Job) {
	w.jobs.Go(func() {
		defer func() { w.free <- struct{}{} }()
		for job != nil {
			job = w.run(job)
		}
	})
}

// run runs one job. It returns the next job if the transaction that ended this one dispatched
// it, and otherwise nil.
func (w *Worker) run(job *Job) *Job {
	job.Grant.Keep()
	job.rests = w.rest.begins
	at := w.enter(job)
	defer w.exit(at)
	ctx, cancel := context.WithCancelCause(job.Grant.Context())
	defer cancel(nil)
	stop := context.AfterFunc(w.work, func() { cancel(errClosed) })
	defer stop()
	told := false
	defer func() {
		if !told { // Run called runtime.Goexit
			w.storeEnd(at, func(ctx context.Context) error {
				_, err := job.Finish(ctx, errors.New("the function Run called runtime.Goexit"), nil)
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
	later, isLater := errors.AsType[*LaterError](failure)
	switch {
	case failure != nil && w.work.Err() != nil: // the work did not fail: Close ended it
		w.storeEnd(at, func(ctx context.Context) error { return job.Return(ctx, errClosed.Error()) })
		return nil
	case isLater:
		w.storeEnd(at, func(ctx context.Context) error { return job.Return(ctx, later.Reason) })
		return nil
	}
	dispatcher := &w.self
	if w.stopping() || w.paused.Load() {
		dispatcher = nil
	}
	var next *Job
	w.storeEnd(at, func(ctx context.Context) (err error) {
		next, err = job.Finish(ctx, failure, dispatcher)
		return err
	})
	return next
}

// A LaterError from Run returns the item to its place in the queue: the work did not fail,
// and must be done later.
type LaterError struct{ Reason string }

func (e *LaterError) Error() string { return "returned to the queue: " + e.Reason }

// guard turns a panic into an error.
func guard(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return work()
}

// report passes an error to OnError, unless it is because of Close.
func (w *Worker) report(err error) {
	if !errors.Is(err, errClosed) {
		w.opt.OnError(err)
	}
}

// tick ticks and returns the time until the next tick.
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
	return earlier(next, w.opt.TickEvery)
}

// leave removes the worker from the store.
func (w *Worker) leave() error {
	w.jobs.Wait()
	return w.q.store.Update(context.WithoutCancel(w.work), func(tx store.Tx) error { return tx.DeleteWorker(w.self.ID) })
}
