package app

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/sched"
)

// Queue is the queued work of a codebase.
type Queue struct {
	*sched.Queue
	app *App
}

// Queue opens the queue with the caps and times of the configuration.
func (a *App) Queue() (*Queue, error) {
	c := a.Config
	retries := c.MaxLockRetries
	if retries == 0 { // for the scheduler, which has a default, that would mean the default
		retries = -1
	}
	q, err := sched.New(a.store, a.Locks, sched.Options{
		Limits: sched.Limits{
			Agents: c.MaxClaudeConcurrency, API: c.MaxAPIConcurrency, Tests: c.MaxTestConcurrency, Jobs: c.MaxGlobalJobs, CPU: c.MaxCPUJobs,
			JobsPerProject: c.MaxJobsPerProject, MapsPerProject: c.MaxConcurrentMapJobsPerProject,
		},
		LockTimeout: c.LockTimeout, MaxLockRetries: retries, EscalateAfter: c.EscalateAfter, MaxAttempts: c.MaxAttempts,
	})
	if err != nil {
		return nil, err
	}
	return &Queue{Queue: q, app: a}, nil
}

// Census counts the items of the queue.
func (q *Queue) Census(ctx context.Context) (c lockkeeper.Census, err error) {
	err = q.app.store.View(ctx, func(r lockkeeper.Reader) (err error) {
		c, err = r.Census()
		return err
	})
	return c, err
}

// itemPage is how many items one look at the store reads at most.
const itemPage = 1_000

// Newest lists the newest items of a status, so many at most, oldest first. No status
// is any, and no limit is all.
func (q *Queue) Newest(ctx context.Context, status lockkeeper.ItemStatus, limit int) (list []*lockkeeper.Item, err error) {
	err = q.app.store.View(ctx, func(r lockkeeper.Reader) error {
		list = nil
		return eachItem(r, status, func(it *lockkeeper.Item) bool {
			list = append(list, it)
			return len(list) != limit
		})
	})
	slices.Reverse(list)
	return list, err
}

// eachItem visits the items of a status, newest first, until visit has seen enough.
func eachItem(r lockkeeper.Reader, status lockkeeper.ItemStatus, visit func(*lockkeeper.Item) bool) error {
	for before := uint64(0); ; {
		page, err := r.Items(lockkeeper.ItemQuery{After: before, Status: status, Limit: itemPage, Latest: true})
		if err != nil {
			return err
		}
		for _, it := range page {
			if !visit(it) {
				return nil
			}
			before = it.Seq
		}
		if len(page) < itemPage {
			return nil
		}
	}
}

// Find finds an item by its id, its key, or what it is called, where one that is not
// completed comes before those that are; nil: there is none.
func (q *Queue) Find(ctx context.Context, name string) (found *lockkeeper.Item, err error) {
	var open, done []*lockkeeper.Item
	err = q.app.store.View(ctx, func(r lockkeeper.Reader) (err error) {
		open, done = nil, nil
		if found, err = r.Item(name); err != nil || found != nil {
			return err
		}
		if found, err = r.ItemWithKey(name); err != nil || found != nil {
			return err
		}
		return eachItem(r, "", func(it *lockkeeper.Item) bool {
			switch {
			case it.Workflow != name:
			case it.Status == lockkeeper.ItemCompleted:
				done = append(done, it)
			default:
				open = append(open, it)
			}
			return true
		})
	})
	if err != nil || found != nil {
		return found, err
	}
	called := open
	if len(open) == 0 {
		called = done
	}
	switch len(called) {
	case 0:
		return nil, nil
	case 1:
		return called[0], nil
	}
	return nil, severalItems(name, called)
}

// idsTold is how many items an error lists.
const idsTold = 8

func severalItems(name string, called []*lockkeeper.Item) error {
	var ids []string
	for _, it := range called[:min(len(called), idsTold)] {
		ids = append(ids, it.ID+" ("+string(it.Status)+")")
	}
	if more := len(called) - len(ids); more > 0 {
		ids = append(ids, fmt.Sprintf("and %d more", more))
	}
	return &lockkeeper.InputError{Field: "item", Value: name, Reason: "several are called so: " + strings.Join(ids, ", "), Next: "name one by its id"}
}

// Workers lists the workers that are alive.
func (q *Queue) Workers(ctx context.Context) (list []lockkeeper.Worker, err error) {
	err = q.app.store.View(ctx, func(r lockkeeper.Reader) error {
		all, err := r.Workers()
		list = slices.DeleteFunc(slices.Clone(all), func(w lockkeeper.Worker) bool { return w.Expires <= r.Now().Lease })
		return err
	})
	return list, err
}

// Bell is rung when there may be something to do in the queue.
func (q *Queue) Bell(ctx context.Context) (lockkeeper.Bell, error) {
	return q.app.store.Bell(ctx, lockkeeper.QueueBell)
}

// Dir is the directory that the caller works in, from the root and with slashes, for
// an item that is to run there.
func (a *App) Dir() (string, error) {
	dir, err := filepath.Rel(a.Root.Dir(), a.base)
	return filepath.ToSlash(dir), err
}
