package bookfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
)

// open creates and opens the directory and acquires the guard. It does not follow a link
// out of the root, because the link's creator could choose where to write.
func (f *File) open(ctx context.Context) (dir *os.File, leave func() error, err error) {
	if dir, err = f.openDir(); err != nil {
		return nil, nil, f.directoryError(err)
	}
	unguard, err := f.guard(ctx, dir)
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	return dir, func() error { return errors.Join(unguard(), dir.Close()) }, nil
}

func (f *File) openDir() (dir *os.File, err error) {
	root, err := os.OpenRoot(f.root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	at := filepath.Dir(f.name)
	if err := root.MkdirAll(at, dirPerm); err != nil {
		return nil, err
	}
	return root.OpenFile(at, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
}

// fileError returns the error for a file that cannot be used.
func (f *File) fileError(reason string, err error) error {
	return &lockkeeper.StoreError{Store: f.Path(), Reason: reason, Err: err,
		Next: "make it a readable and writable locks file, or move it away; Lockkeeper's claims are safe in its own store"}
}

// directoryError says why the directory of the file cannot be used, and where a link
// leads.
func (f *File) directoryError(err error) error {
	reason, at := "its directory cannot be used", f.root
	for name := range strings.SplitSeq(filepath.Dir(f.name), string(filepath.Separator)) {
		at = filepath.Join(at, name)
		if what := otherThan(fs.ModeDir, at); what != "" {
			reason += " because " + at + " is " + what
			break
		}
	}
	return &lockkeeper.StoreError{Store: f.Path(), Reason: reason, Err: err,
		Next: "make it a readable and writable directory inside the root, or set another locks_file; Lockkeeper's claims are safe in its own store"}
}

// otherThan describes the file at a path if its type is not want, or returns "".
func otherThan(want fs.FileMode, path string) string {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() == want {
		return ""
	}
	switch info.Mode().Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeNamedPipe:
		return "a pipe"
	case fs.ModeSocket:
		return "a socket"
	case fs.ModeSymlink:
		to, err := os.Readlink(path)
		if err != nil {
			to = "an unknown target: " + err.Error()
		}
		return fmt.Sprintf("a link to %s", to)
	}
	return "a device"
}

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
