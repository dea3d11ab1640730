//go:build unix

package workspace

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// The lock of a workspace is on its directory itself, so that it cannot be removed
// and leave the workspace. It ends with the process that has it.

// openLocked opens a workspace's directory for whoever uses it.
func openLocked(dir string) (int, error) {
	fd, err := openAt(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, pathError("open", dir, err)
	}
	switch err := flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		closeFD(fd)
		return -1, &lockkeeper.RefusedError{Act: "taking over workspace " + dir, Reason: "somebody uses it, or looks at it",
			Next: "wait until that process ends, or end it"}
	default:
		closeFD(fd)
		return -1, lockkeeper.WithNext(fmt.Errorf("lock %s: %w", dir, err), "use a directory on a local disk")
	}
}

// isFree reports whether nobody uses the workspace of an open directory.
func isFree(fd int) (bool, error) {
	err := flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlock does not wait for a child that is just being started, and has the
// descriptor for a moment, as closing would.
func unlock(fd int) { flock(fd, unix.LOCK_UN) }

func flock(fd, how int) error { return untilDone(func() error { return unix.Flock(fd, how) }) }
