package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// change runs a git that changes the repository, unless an operation of a person is in
// progress.
func (r *Repo) change(ctx context.Context, in string, args ...string) (string, error) {
	return r.locked(ctx, func() error {
		under, err := r.operation()
		if under != nil && under.Operation != IndexLock {
			return under
		}
		return err
	}, in, args...)
}

// locked runs a git that needs one of git's locks, and retries for a while if another git
// has it. Before each attempt it calls the function may, whose error ends the attempts.
func (r *Repo) locked(ctx context.Context, may func() error, in string, args ...string) (string, error) {
	for began := time.Now(); ; {
		if err := may(); err != nil {
			return "", err
		}
		out, err := r.git.Output(ctx, in, args...)
		lock, isLocked := lockOf(err)
		if !isLocked {
			return out, err
		}
		left := r.patience - time.Since(began)
		if left <= 0 {
			paused := &PausedError{Top: r.top, Operation: IndexLock, File: lock, Touched: time.Now()}
			if info, err := os.Lstat(lock); err == nil {
				paused.Touched = info.ModTime()
			}
			return "", paused
		}
		if err := r.unlocked(ctx, left); err != nil {
			return "", err
		}
	}
}

// unlocked waits until the index has no lock, but not longer than patience. For locks of
// refs git itself waits.
func (r *Repo) unlocked(ctx context.Context, patience time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := await(bounded, r.dir, func() (bool, error) {
		_, err := os.Lstat(filepath.Join(r.dir, "index.lock"))
		if isGone(err) {
			return true, nil
		}
		return false, err
	})
	if ctx.Err() == nil && bounded.Err() != nil {
		return nil // the next attempt shows whether the lock is gone
	}
	return err
}

// lockOf returns the lock that made git fail. It has no name if another process moved a ref
// meanwhile.
func lockOf(err error) (string, bool) {
	says := saysOf(err)
	if _, rest, found := strings.Cut(says, "Unable to create '"); found {
		lock, _, exists := strings.Cut(rest, "': File exists")
		return lock, exists
	}
	return "", strings.Contains(says, "cannot lock ref") && strings.Contains(says, "but expected")
}
