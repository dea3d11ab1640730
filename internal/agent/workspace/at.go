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

// This package uses plain descriptors, because an os.File would register each of ten thousand
// files with the poller.

// A fileStat is the stat of a name. Links are not followed.
type fileStat struct {
	mode     fs.FileMode
	size     int64
	blocks   int64
	dev      uint64
	inode    uint64
	device   uint64 // of a device
	links    uint64
	modified int64 // nanoseconds
	changed  int64
}

// isWhiteout reports whether an overlay has this name to say that it was removed.
func (l fileStat) isWhiteout() bool {
	return l.mode.Type() == fs.ModeDevice|fs.ModeCharDevice && l.device == 0
}

func statAt(dir int, name string) (fileStat, error) {
	var st unix.Stat_t
	err := untilDone(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return statOf(&st), err
}

func statFD(fd int) (fileStat, error) {
	var st unix.Stat_t
	err := untilDone(func() error { return unix.Fstat(fd, &st) })
	return statOf(&st), err
}

func statOf(st *unix.Stat_t) fileStat {
	return fileStat{mode: fileMode(uint32(st.Mode)), size: st.Size, blocks: int64(st.Blocks), dev: uint64(st.Dev), inode: uint64(st.Ino), device: uint64(st.Rdev), links: uint64(st.Nlink),
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

// openAt opens one name in a directory, never through a link. It does not block on a pipe.
func openAt(dir int, name string, flags int, perm fs.FileMode) (fd int, err error) {
	err = untilDone(func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	return fd, err
}

// putTime sets the modification time of a name, in nanoseconds. It follows no link.
func putTime(dir int, name string, modified int64) error {
	t := unix.NsecToTimespec(modified)
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW)
}

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

// namesAtOnce bounds how many names of a directory are in memory.
const namesAtOnce = 10_000

// eachName lists an open directory in portions.
func eachName(dir int, do func(names []string) error) error {
	fd, err := openAt(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0) // opens the directory again, to have a separate read position
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

// closeFD closes a descriptor of a file that was only read or will be removed.
func closeFD(fd int) { unix.Close(fd) }

// opened calls the function do with an open directory below root.
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

// isGone reports whether a part of a path is missing, or is no longer a directory.
func isGone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK)
}

// isInUse reports whether a directory could not be removed because it is not empty.
func isInUse(err error) bool { return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) }

// isClosed reports whether a path exists but cannot be read.
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

// An area is a set of paths with everything below them.
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

// openFully gives the owner all rights to an open directory.
func openFully(dir int) error {
	seen, err := statFD(dir)
	if err == nil && seen.mode&0o700 != 0o700 {
		err = unix.Fchmod(dir, uint32(seen.mode.Perm()|0o700))
	}
	return err
}

// depth returns the depth of a path, to sort paths.
func depth(p string) int { return strings.Count(p, "/") }

func split(p string) (dir, name string) { return path.Dir(p), path.Base(p) }
