//go:build unix

package app

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func flockShared(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// flockAlone takes the exclusive lock unless somebody has any.
func flockAlone(f *os.File) (busy bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
