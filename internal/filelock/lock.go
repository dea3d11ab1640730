//go:build unix

package filelock

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Wait takes the lock alone, once nobody else has it.
func Wait(f *os.File) error { return flock(f, unix.LOCK_EX) }

// Share takes the lock together with others who share it.
func Share(f *os.File) error { return flock(f, unix.LOCK_SH) }

// Try takes the lock alone; false: somebody else has it.
func Try(f *os.File) (bool, error) {
	err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Held reports whether another process holds the lock exclusively. It acquires nothing.
func Held(f *os.File) (bool, error) {
	err := flock(f, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, Unlock(f)
}

// Await is Wait as long as the context lasts. False without an error: it ended first, and
// leave, which is to close the file, is called once the wait is over.
func Await(ctx context.Context, f *os.File, leave func()) (bool, error) {
	taken := make(chan error)
	go func() {
		err := Wait(f)
		select {
		case taken <- err:
		case <-ctx.Done():
			leave()
		}
	}()
	select {
	case err := <-taken:
		return err == nil, err
	case <-ctx.Done():
		return false, nil
	}
}

// Unlock gives a lock back. Closing the file would not be enough: a child that is just
// being started has a copy of it for a moment.
func Unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
