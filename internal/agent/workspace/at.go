//go:build unix

package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Descriptors are plain numbers here: an os.File would ask the poller about every
// one of ten thousand files.

// look is what the disk says of one name, links not followed.
type look struct {
	mode     fs.FileMode
	size     int64
	blocks   int64
	dev      uint64
	inode    uint64
	links    uint64
	modified int64 // nanoseconds
	changed  int64
}

func lookAt(dir int, name string) (look, error) {
	var st unix.Stat_t
	err := untilDone(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return lookOf(&st), err
}

func lookFD(fd int) (look, error) {
	var st unix.Stat_t
	err := untilDone(func() error { return unix.Fstat(fd, &st) })
	return lookOf(&st), err
}

func lookOf(st *unix.Stat_t) look {
	return look{mode: fileMode(uint32(st.Mode)), size: st.Size, blocks: int64(st.Blocks), dev: uint64(st.Dev), inode: uint64(st.Ino), links: uint64(st.Nlink),
		modified: st.Mtim.Nano(), changed: st.Ctim.Nano()}
}

func fileMode(mode uint32) fs.FileMode {
	out := fs.FileMode(mode & 0o777)
	if mode&unix.S_ISUID != 0 {
		out |= fs.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		out |= fs.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		out |= fs.ModeSticky
	}
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		out |= fs.ModeDir
	case unix.S_IFLNK:
		out |= fs.ModeSymlink
	case unix.S_IFIFO:
		out |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		out |= fs.ModeSocket
	case unix.S_IFBLK:
		out |= fs.ModeDevice
	case unix.S_IFCHR:
		out |= fs.ModeDevice | fs.ModeCharDevice
	default:
		out |= fs.ModeIrregular
	}
	return out
}

// untilDone repeats a system call that a signal interrupted.
func untilDone(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// openAt opens one name in a directory, never through a link and without waiting
// for anybody at the other end of a pipe.
func openAt(dir int, name string, flags int, perm fs.FileMode) (fd int, err error) {
	err = untilDone(func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	return fd, err
}

// putTime sets when a name was modified, in nanoseconds. No link is followed.
func putTime(dir int, name string, modified int64) error {
	t := unix.NsecToTimespec(modified)
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW)
}

// readLink is the text of a link.
func readLink(dir int, name string) (string, error) {
	for size := 256; ; size *= 2 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(dir, name, buf)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", err
		case n < size:
			return string(buf[:n]), nil
		}
	}
}

// namesAtOnce bounds how much of a directory is in memory.
const namesAtOnce = 10_000

// eachName lists an open directory, in portions.
func eachName(dir int, do func(names []string) error) error {
	fd, err := openAt(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0) // with a position of its own
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	for {
		names, err := f.Readdirnames(namesAtOnce)
		if len(names) > 0 {
			if err := do(names); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// closeFD closes what was only read, or is about to be thrown away.
func closeFD(fd int) { unix.Close(fd) }

// opened lends an open directory below another one.
func opened(root int, path string, do func(dir int) error) error {
	dir, err := openFolder(root, path, true)
	if err != nil {
		return pathError("open", path, err)
	}
	defer closeFD(dir)
	return do(dir)
}

func pathError(op, path string, err error) error {
	var known *fs.PathError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// isGone reports whether a path leads nowhere: a part of it is missing, or is not
// the directory it was.
func isGone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK)
}

// isInUse reports whether a directory could not be removed because something is in
// it.
func isInUse(err error) bool { return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) }

// isClosed reports whether something is there that we may not, or cannot, read.
func isClosed(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO)
}

// below joins a name to a path relative to a root.
func below(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// area is a number of paths, with all that is below them.
type area map[string]bool

func areaOf(paths []string) area {
	a := make(area, len(paths))
	for _, p := range paths {
		a[p] = true
	}
	return a
}

func (a area) has(p string) bool {
	for !a[p] && p != "." {
		p = path.Dir(p)
	}
	return a[p]
}

// openFully gives the owner of an open directory all rights to it.
func openFully(dir int) error {
	seen, err := lookFD(dir)
	if err == nil && seen.mode&0o700 != 0o700 {
		err = unix.Fchmod(dir, uint32(seen.mode.Perm()|0o700))
	}
	return err
}

// depth orders what has to be done from above or from below.
func depth(p string) int { return strings.Count(p, "/") }

func split(p string) (dir, name string) { return path.Dir(p), path.Base(p) }
