package workspace

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// openFolder opens a directory below another one. No part of the path may be a
// link or lead upwards; unless cross is set, none may lead onto another mount.
func openFolder(root int, path string, cross bool) (fd int, err error) {
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	if !cross {
		how.Resolve |= unix.RESOLVE_NO_XDEV
	}
	err = untilDone(func() (err error) {
		fd, err = unix.Openat2(root, path, how)
		return err
	})
	return fd, err
}

// chmodAt changes the permissions of a name, even if it is not readable. It refuses a link.
func chmodAt(dir int, name string, perm fs.FileMode) error {
	fd, err := openAt(dir, name, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	seen, err := statFD(fd)
	if err != nil {
		return err
	}
	if seen.mode.Type() == fs.ModeSymlink {
		return unix.ELOOP
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), uint32(perm.Perm()))
}
