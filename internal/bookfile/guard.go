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
func (f *File) guard(ctx context.Context, dir *os.File) (leave func() error, err error) {
	g, err := openGuard(dir, f.Path()+".guard")
	if err != nil {
		return nil, &lockkeeper.StoreError{Store: f.Path(), Reason: "its guard cannot be opened", Err: err,
			Next: "make the guard a file, and its directory one, that you may read and write, or remove the guard while nobody claims anything"}
	}
	if err := takeGuard(ctx, dir, g); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return func() error { return errors.Join(filelock.Unlock(g), g.Close()) }, nil
}

// openGuard opens the guard in an open directory. No link is followed, and whatever is
// there is not waited for.
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
