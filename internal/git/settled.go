package git

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Want is what Settled waits for.
type Want struct {
	Branch string             // where HEAD is to be; empty: anywhere
	Tell   func(*PausedError) // told once of each reason to wait; may be nil
}

const (
	// lookEvery is how often something is looked at that events should have told of.
	lookEvery = 2 * time.Second
	// lockPatience is how long an index.lock is nothing to speak of: editors and
	// prompts ask git all the time. It is also how long an act waits for one.
	lockPatience = 10 * time.Second
)

// Settled waits until nothing is in progress in the repository and HEAD is where it is
// wanted.
func (r *Repo) Settled(ctx context.Context, want Want) error {
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

// paused is the reason why nothing can land now; nil: there is none.
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

// await waits until something in a directory is as it should be. Events make it
// quick, and a look now and then makes it certain, also where there are no events.
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
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-events:
		case <-lost: // too many at once: the next look sees what they led to
		case <-look.C:
		}
	}
}
