//go:build unix

package dossier

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// turn waits until nobody else, of all processes, changes the documents of a folder. The
// kernel gives the turn on when a process dies. A folder that is not there yet has none:
// what is written first into it is still compared and swapped.
func turn(ctx context.Context, dir string) (release func() error, err error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	got := make(chan error)
	go func() {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		select {
		case got <- err:
		case <-ctx.Done():
			_ = f.Close() // a wait in the kernel cannot be called off: nobody is there to hear how it ended
		}
	}()
	select {
	case err = <-got:
	case <-ctx.Done():
		return nil, fmt.Errorf("somebody else has been changing %s all the time: %w", dir, context.Cause(ctx))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return f.Close, nil
}
