package bookfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
)

const (
	// maxGuardWait is how long to wait for other Lockkeeper processes. Each takes a few
	// milliseconds, unless it was suspended or the machine is very busy.
	maxGuardWait = 2 * time.Minute

	pollInterval = 2 * time.Millisecond // between two attempts

	// maxOvertaking is how long a waiter may be overtaken by processes that acquire the
	// guard repeatedly. They need not wake up first, so they are faster.
	maxOvertaking = 100 * time.Millisecond
)

// guard waits for the exclusive right of one Lockkeeper process to change the file. After
// maxOvertaking a waiter locks the directory, which every other process must lock before
// it tries. So each waiter gets the guard eventually.
func (f *File) guard(ctx context.Context, dir *os.File) (leave func() error, err error) {
	g, err := openGuard(dir, f.Path()+".guard")
	if err != nil {
		return nil, &lockkeeper.StoreError{Store: f.Path(), Reason: "its guard cannot be opened", Err: err,
			Next: "make the guard and its directory readable and writable, or remove the guard while no claim is being made"}
	}
	if err := acquireGuard(ctx, dir, g); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return func() error { return errors.Join(filelock.Unlock(g), g.Close()) }, nil
}

// openGuard opens the guard without following links and without blocking.
func openGuard(dir *os.File, path string) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(dir.Fd()), filepath.Base(path), unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, filePerm)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

func acquireGuard(ctx context.Context, dir, f *os.File) error {
	if err := lockFile(ctx, dir, maxGuardWait); err != nil {
		return err
	}
	if err := filelock.Unlock(dir); err != nil {
		return err
	}
	var stopped *lockkeeper.StoreError
	if err := lockFile(ctx, f, maxOvertaking); !errors.As(err, &stopped) {
		return err
	}
	if err := lockFile(ctx, dir, maxGuardWait); err != nil {
		return err
	}
	return errors.Join(lockFile(ctx, f, maxGuardWait), filelock.Unlock(dir))
}

// lockFile waits for an exclusive lock. It polls because a blocking flock cannot be
// canceled.
func lockFile(ctx context.Context, f *os.File, patience time.Duration) error {
	for limit := time.Now().Add(patience); ; {
		mine, err := filelock.Try(f)
		switch {
		case err != nil:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		case mine:
			return nil
		case time.Now().After(limit):
			return &lockkeeper.StoreError{Store: f.Name(), Reason: "another process has held its lock for " + patience.String(),
				Next: "find the suspended process with fuser"}
		}
		if err := sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// sleep pauses between polls of events that send no signal: another process's flock, or a foreign
// writer.
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
