package git

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A Want describes the state that AwaitIdle waits for.
type Want struct {
	Branch string             // the branch of HEAD; empty for any
	Tell   func(*PausedError) // called once for each reason to wait; may be nil
}

const (
	// pollInterval is how often await checks its condition without an event.
	pollInterval = 2 * time.Second
	// lockPatience is how long an index.lock is not reported, because editors and
	// prompts run git all the time. It is also how long an operation waits for an index.lock to go.
	lockPatience = 10 * time.Second
)

// AwaitIdle waits until no operation is in progress in the repository and HEAD is on the
// wanted branch.
func (r *Repo) AwaitIdle(ctx context.Context, want Want) error {
	began := time.Now()
	var told *PausedError
	return await(ctx, r.dir, func() (bool, error) {
		why, err := r.paused(ctx, want.Branch)
		if err != nil || why == nil {
			return err == nil, err
		}
		isNews := told == nil || why.Operation != told.Operation || why.Branch != told.Branch
		if isNews && want.Tell != nil && (why.Operation != IndexLock || time.Since(began) >= r.patience) {
			told = why
			want.Tell(why)
		}
		return false, nil
	})
}

// paused returns the reason why nothing can land now, or nil.
func (r *Repo) paused(ctx context.Context, branch string) (*PausedError, error) {
	under, err := r.operation()
	if under != nil || err != nil || branch == "" {
		return under, err
	}
	s, err := r.State(ctx)
	if err != nil || s.Branch == branch {
		return nil, err
	}
	return &PausedError{Top: r.top, Branch: s.Branch, Want: branch}, nil
}

// await calls the function done until it returns true: after each event in a directory, and
// regularly in case events are missing.
func await(ctx context.Context, dir string, done func() (bool, error)) error {
	if ok, err := done(); ok || err != nil {
		return err
	}
	var events chan fsnotify.Event
	var lost chan error
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		defer watcher.Close()
		if watcher.Add(dir) == nil {
			events, lost = watcher.Events, watcher.Errors
		}
	}
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-events:
		case <-lost: // too many events arrived at once, so some are missing
		case <-poll.C:
		}
	}
}
