package sched_test

import (
	"context"
	"errors"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
)

const space = "7f0c7a39-0000-4000-8000-000000000001"

var ada = lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}

// A yard is a queue with its workers.
type yard struct {
	t     testing.TB
	store store.Store
	locks *lock.Manager
	queue *sched.Queue
}

// newQueue returns a queue with the phases of the flows.
func newQueue(st store.Store, locks *lock.Manager, opt sched.Options) (*sched.Queue, error) {
	opt.Phases = flow.QueueOrder()
	return sched.New(st, locks, opt)
}

// newYard opens a store and a queue. Inside synctest they use the fake clock.
func newYard(t testing.TB, opt sched.Options) *yard {
	t.Helper()
	y := &yard{t: t, store: memstore.New(space, memstore.Options{KeepEvents: 100_000})}
	y.locks = lock.New(y.store, lock.Options{})
	var err error
	y.queue, err = newQueue(y.store, y.locks, opt)
	must(t, err)
	t.Cleanup(func() { must(t, y.locks.Close(), y.store.Close()) })
	return y
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// writes and reads are locks on files.
func writes(paths ...string) []lockkeeper.Lock { return locked(lockkeeper.Write, paths) }
func reads(paths ...string) []lockkeeper.Lock  { return locked(lockkeeper.Read, paths) }

func locked(mode lockkeeper.Mode, paths []string) (list []lockkeeper.Lock) {
	for _, p := range paths {
		list = append(list, lockkeeper.Lock{Target: lockkeeper.Target{Path: p, Kind: lockkeeper.File}, Mode: mode})
	}
	return list
}

// enqueue adds one item.
func (y *yard) enqueue(o sched.ItemSpec) *lockkeeper.Item {
	y.t.Helper()
	if o.By.Name == "" {
		o.By = ada
	}
	items, err := y.queue.Enqueue(y.t.Context(), o)
	must(y.t, err)
	return items[0]
}

// claim dispatches an item to a worker of one node. It returns nil if no item can start.
func (y *yard) claim() *sched.Job {
	y.t.Helper()
	job, err := y.queue.Dispatch(y.t.Context(), lockkeeper.Worker{ID: "w", Node: "here"})
	must(y.t, err)
	return job
}

// started claims every item that can start, and returns their names and jobs.
func (y *yard) started() (names []string, jobs []*sched.Job) {
	y.t.Helper()
	for job := y.claim(); job != nil; job = y.claim() {
		names, jobs = append(names, job.Item.Workflow), append(jobs, job)
	}
	return names, jobs
}

func (y *yard) finish(job *sched.Job, failure error) {
	y.t.Helper()
	_, err := job.Finish(y.t.Context(), failure, nil)
	must(y.t, err)
}

func (y *yard) tick() {
	y.t.Helper()
	_, err := y.queue.Tick(y.t.Context())
	must(y.t, err)
}

// item returns the current state of an item.
func (y *yard) item(id string) (it *lockkeeper.Item) {
	y.t.Helper()
	must(y.t, y.store.View(context.WithoutCancel(y.t.Context()), func(r store.Reader) (err error) {
		it, err = r.Item(id)
		return err
	}))
	return it
}

// events returns the events of some kinds, oldest first.
func (y *yard) events(kinds ...lockkeeper.EventKind) (found []lockkeeper.Event) {
	y.t.Helper()
	all, err := y.locks.Events(context.WithoutCancel(y.t.Context()), store.EventQuery{Limit: 100_000})
	must(y.t, err)
	for _, ev := range all {
		for _, kind := range kinds {
			if ev.Kind == kind {
				found = append(found, ev)
			}
		}
	}
	return found
}

// impatient is a context under which every call works but none waits.
type impatient struct{ context.Context }

func (impatient) Done() <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}

func (impatient) Err() error { return nil }

// all returns every item.
func (y *yard) all() (list []*lockkeeper.Item) {
	y.t.Helper()
	must(y.t, y.store.View(context.WithoutCancel(y.t.Context()), func(r store.Reader) (err error) {
		list, err = r.Items(store.ItemQuery{Limit: 100_000})
		return err
	}))
	return list
}
