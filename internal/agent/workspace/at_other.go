//go:build unix && !linux

package workspace

import (
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// openFolder opens a directory below another one, name by name. No part of the
// path may be a link or lead upwards; unless cross is set, none may lead onto
// another device.
func openFolder(root int, path string, cross bool) (int, error) {
	top, err := statFD(root)
	if err != nil {
		return -1, err
	}
	here, err := openAt(root, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil || path == "." {
		return here, err
	}
	for _, name := range strings.Split(path, "/") {
		if name == ".." {
			closeFD(here)
			return -1, unix.EXDEV
		}
		next, err := openAt(here, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		closeFD(here)
		if err != nil {
			return -1, err
		}
		here = next
		seen, err := statFD(here)
		if err == nil && !cross && seen.dev != top.dev {
			err = unix.EXDEV
		}
		if err != nil {
			closeFD(here)
			return -1, err
		}
	}
	return here, nil
}

// chmodAt changes the permissions of a name. It refuses a link.
func chmodAt(dir int, name string, perm fs.FileMode) error {
	seen, err := statAt(dir, name)
	if err != nil {
		return err
	}
	if seen.mode.Type() == fs.ModeSymlink {
		return unix.ELOOP
	}
	return unix.Fchmodat(dir, name, uint32(perm.Perm()), unix.AT_SYMLINK_NOFOLLOW)
}
