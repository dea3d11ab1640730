package bookfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/filelock"
)

const (
	// guardPatience is how long one waits for others of ours: each takes a few
	// milliseconds, unless it was stopped in the middle or the machine is very busy.
	guardPatience = 2 * time.Minute

	knock = 2 * time.Millisecond // between two tries

	// overtaking is how long one may be overtaken by those who come again and again.
	// They do not have to wait for the next one to wake up, so all of them are faster.
	overtaking = 100 * time.Millisecond
)

// guard waits for the right to change the file, among all of ours. Who has waited for
// it for a while takes the lock on the directory, which everybody else has to wait for
// before trying: so nobody waits for ever.
func guard(ctx context.Context, dir *os.File, path string) (leave func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, filePerm)
	if err != nil {
		return nil, err
	}
	if err := takeGuard(ctx, dir, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error { return errors.Join(filelock.Unlock(f), f.Close()) }, nil
}

func takeGuard(ctx context.Context, dir, f *os.File) error {
	if err := lockFile(ctx, dir, guardPatience); err != nil {
		return err
	}
	if err := filelock.Unlock(dir); err != nil {
		return err
	}
	var stopped *lockkeeper.StoreError
	if err := lockFile(ctx, f, overtaking); !errors.As(err, &stopped) {
		return err
	}
	if err := lockFile(ctx, dir, guardPatience); err != nil {
		return err
	}
	return errors.Join(lockFile(ctx, f, guardPatience), filelock.Unlock(dir))
}

// lockFile waits for an exclusive lock. Waiting in the kernel could not be called off,
// so it asks again and again.
func lockFile(ctx context.Context, f *os.File, patience time.Duration) error {
	for limit := time.Now().Add(patience); ; {
		mine, err := filelock.Try(f)
		switch {
		case err != nil:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		case mine:
			return nil
		case time.Now().After(limit):
			return &lockkeeper.StoreError{Store: f.Name(), Reason: "another process has had its lock for " + patience.String() + " and does not go on",
				Next: "see with fuser which one is stopped"}
		}
		if err := sleep(ctx, knock); err != nil {
			return err
		}
	}
}

// sleep waits for what cannot signal: another process's flock, and a foreign writer.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
