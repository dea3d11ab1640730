package gate

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// mayWrite reports whether this process may change the names in a directory.
func mayWrite(dir *os.File) bool {
	conn, err := dir.SyscallConn()
	if err != nil {
		return false
	}
	var denied error
	if err := conn.Control(func(fd uintptr) { denied = unix.Faccessat(int(fd), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS) }); err != nil {
		return false
	}
	return denied == nil
}

// isInUse reports whether a directory could not be removed because it is not empty.
func isInUse(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY)
}
