package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// A State identifies a version of a regular file by its file system metadata. Two equal states
// with a ctime before the current clock tick mean the same content.
type State struct {
	Dev   uint64 `json:"dev"`
	Inode uint64 `json:"inode"`
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime"`
	Ctime int64  `json:"ctime"`
}

func (s State) name() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", s.Dev, s.Inode, s.Size, uint64(s.Mtime), uint64(s.Ctime))
}

// found is a file with its metadata on disk.
type found struct {
	State
	born int64 // 0: the file system does not record creation times
	mode fs.FileMode
}

// stat returns the file at a path. regular is false if it is missing or not a regular file.
func stat(file string) (f found, regular bool, err error) {
	f, regular, err = statx(unix.AT_FDCWD, file, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return found{}, false, nil
	}
	return f, regular, err
}

// stateOf returns the state of an open file, which must be a regular one.
func stateOf(f *os.File) (State, error) {
	is, regular, err := statx(int(f.Fd()), "", unix.AT_EMPTY_PATH)
	if err == nil && !regular {
		err = fmt.Errorf("%s is no longer a regular file", f.Name())
	}
	return is.State, err
}

func statx(dir int, name string, flags int) (found, bool, error) {
	var x unix.Statx_t
	if err := unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &x); err != nil {
		return found{}, false, &os.PathError{Op: "statx", Path: name, Err: err}
	}
	return found{born: nanos(x.Btime), mode: fs.FileMode(x.Mode & 0o777),
		State: State{Dev: unix.Mkdev(x.Dev_major, x.Dev_minor), Inode: x.Ino, Size: int64(x.Size), Mtime: nanos(x.Mtime), Ctime: nanos(x.Ctime)},
	}, x.Mode&unix.S_IFMT == unix.S_IFREG, nil
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// clock returns the time of the coarse clock from which the kernel takes ctimes. A write
// to a file with an earlier ctime gives it a new one.
func clock() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &t); err != nil {
		return 0, fmt.Errorf("read the clock of the file system: %w", err)
	}
	return t.Nano(), nil
}
