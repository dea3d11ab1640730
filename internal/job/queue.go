package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/sched"
	"lockkeeper/store"
)

type Queue struct {
	*sched.Queue
	app *project.Project
}

// Open opens the queue with the caps and times of the configuration.
func Open(a *project.Project) (*Queue, error) {
	q, err := Scheduler(a, a.Config.MaxClaudeConcurrency)
	if err != nil {
		return nil, err
	}
	return &Queue{Queue: q, app: a}, nil
}

// Scheduler opens the scheduler for a number of concurrent agents.
func Scheduler(a *project.Project, agents int) (*sched.Queue, error) {
	c := a.Config
	retries := c.MaxLockRetries
	if retries == 0 { // 0 would mean the scheduler's default
		retries = -1
	}
	return sched.New(a.Store, a.Locks, sched.Options{
		Phases: flow.QueueOrder(),
		Limits: sched.Limits{
			Agents: agents, API: c.MaxAPIConcurrency, Tests: c.MaxTestConcurrency, Jobs: c.MaxGlobalJobs, CPU: c.MaxCPUJobs,
			JobsPerProject: c.MaxJobsPerProject, MapsPerProject: c.MaxConcurrentMapJobsPerProject,
		},
		LockTimeout: c.LockTimeout, MaxLockRetries: retries, EscalateAfter: c.EscalateAfter, MaxAttempts: c.MaxAttempts,
	})
}

// view reads from the store in one transaction.
func view[T any](ctx context.Context, q *Queue, read func(store.Reader) (T, error)) (v T, err error) {
	err = q.app.Store.View(ctx, func(r store.Reader) (err error) {
		v, err = read(r)
		return err
	})
	return v, err
}

func (q *Queue) Census(ctx context.Context) (store.Census, error) {
	return view(ctx, q, store.Reader.Census)
}

// itemPage is how many items one query reads at most.
const itemPage = 1_000

// EachItem visits the items of a status, newest first, until visit returns false.
func EachItem(r store.Reader, status lockkeeper.ItemStatus, visit func(*lockkeeper.Item) bool) error {
	for before := uint64(0); ; {
		page, err := r.Items(store.ItemQuery{After: before, Status: status, Limit: itemPage, Latest: true})
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

// Find finds an item by its id, its key or its workflow. It returns nil if there is none. Among
// items with the same workflow, it returns the open one, or else the newest one.
func (q *Queue) Find(ctx context.Context, name string) (*lockkeeper.Item, error) {
	return view(ctx, q, func(r store.Reader) (*lockkeeper.Item, error) {
		if found, err := r.Item(name); err != nil || found != nil {
			return found, err
		}
		if found, err := r.ItemWithKey(name); err != nil || found != nil {
			return found, err
		}
		var open []*lockkeeper.Item
		var done *lockkeeper.Item
		err := EachItem(r, "", func(it *lockkeeper.Item) bool {
			switch {
			case it.Workflow != name:
			case it.Status == lockkeeper.ItemCompleted:
				done = cmp.Or(done, it) // the newest comes first
			default:
				open = append(open, it)
			}
			return true
		})
		switch {
		case err != nil || len(open) == 0:
			return done, err
		case len(open) > 1:
			return nil, severalItems(name, open)
		}
		return open[0], nil
	})
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
	return &lockkeeper.InputError{Field: "item", Value: name, Reason: "ambiguous name: " + strings.Join(ids, ", "), Next: "use an id"}
}

// Items reads items by their ids and skips missing ones.
func (q *Queue) Items(ctx context.Context, ids []string) ([]*lockkeeper.Item, error) {
	return view(ctx, q, func(r store.Reader) (list []*lockkeeper.Item, err error) {
		for _, id := range ids {
			it, err := r.Item(id)
			if err != nil {
				return nil, err
			}
			if it != nil {
				list = append(list, it)
			}
		}
		return list, nil
	})
}

// Oldest lists the oldest items of a status, up to a limit.
func (q *Queue) Oldest(ctx context.Context, status lockkeeper.ItemStatus, limit int) ([]*lockkeeper.Item, error) {
	return view(ctx, q, func(r store.Reader) ([]*lockkeeper.Item, error) {
		return r.Items(store.ItemQuery{Status: status, Limit: limit})
	})
}

// FailedBefore finds a failed item that keeps the given one from starting, because it must come
// first, directly or indirectly. It returns nil if there is none.
func (q *Queue) FailedBefore(ctx context.Context, it *lockkeeper.Item) (*lockkeeper.Item, error) {
	return view(ctx, q, func(r store.Reader) (*lockkeeper.Item, error) {
		seen := map[string]bool{}
		for next := slices.Clone(it.After); len(next) > 0; next = next[1:] {
			if seen[next[0]] {
				continue
			}
			seen[next[0]] = true
			first, err := r.Item(next[0])
			switch {
			case err != nil:
				return nil, err
			case first == nil || first.Status == lockkeeper.ItemCompleted:
			case first.Status == lockkeeper.ItemError:
				return first, nil
			default:
				next = append(next, first.After...)
			}
		}
		return nil, nil
	})
}

// Workers lists the live workers: their lease has not expired, and their process is not known to
// be dead.
func (q *Queue) Workers(ctx context.Context) ([]lockkeeper.Worker, error) {
	return view(ctx, q, q.WorkersIn)
}

// WorkersIn does the same as Workers in a transaction of the caller.
func (q *Queue) WorkersIn(r store.Reader) ([]lockkeeper.Worker, error) {
	all, err := r.Workers()
	return slices.DeleteFunc(slices.Clone(all), func(w lockkeeper.Worker) bool {
		return w.Expires <= r.Now().Lease || w.Process != nil && q.app.Host.Liveness(*w.Process) == lockkeeper.ProcessDead
	}), err
}

// Feed follows the event log from now on. The caller closes it.
func (q *Queue) Feed(ctx context.Context) (*feed.Feed, error) {
	return feed.Open(ctx, q.app.Store, feed.Options{})
}
