package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

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

// A cloning shares the blocks of files between two trees if the disk supports it.
type cloning struct{ hopeless atomic.Bool }

// try makes an empty file a clone of another one. If it returns false, the file is still empty.
func (c *cloning) try(in, out int) (cloned bool, err error) {
	if c.hopeless.Load() {
		return false, nil
	}
	err = untilDone(func() error { return unix.IoctlFileClone(out, in) })
	switch {
	case err == nil:
		return true, nil
	case isUnable(err):
		c.hopeless.Store(isUnknown(err)) // any other error is about this file alone, or means that the disk does not support clones
		return false, nil
	}
	return false, err
}

// moveContent copies a whole file inside the kernel. It returns false if the disk cannot do that.
// Then nothing was copied.
func moveContent(in, out int, size int64) (moved bool, err error) {
	for at, n := int64(0), 0; at < size; at += int64(n) {
		err := untilDone(func() (err error) {
			n, err = unix.CopyFileRange(in, nil, out, nil, int(min(size-at, 1<<30)), 0)
			return err
		})
		switch {
		case at == 0 && (isUnable(err) || err == nil && n == 0): // some disks return an error, some copy nothing
			return false, nil
		case err != nil:
			return false, err
		case n == 0: // the file became shorter; its stat will differ
			return true, nil
		}
	}
	return true, nil
}

// isUnable reports whether the disk cannot do the operation with these files.
func isUnable(err error) bool {
	return errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ETXTBSY) ||
		isUnknown(err)
}

// isUnknown reports whether the disk or the kernel does not support the operation at all.
func isUnknown(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.ENOSYS)
}

// opaqueName is the attribute of a directory that hides the directories below it in an overlay of
// an ordinary user.
const opaqueName = "user.overlay.opaque"

func isOpaque(dir int) bool {
	var text [1]byte
	n, err := unix.Fgetxattr(dir, opaqueName, text[:])
	return err == nil && n == 1 && text[0] == 'y'
}

func makeOpaque(dir int) error { return unix.Fsetxattr(dir, opaqueName, []byte("y"), 0) }
