package durable

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var _ Disk = OSDisk{}

// OSDisk is the operating system's Disk.
type OSDisk struct{}

// within calls the function do with the descriptor of an open directory.
func within(at *os.File, op, name string, do func(fd int) error) error {
	conn, err := at.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := conn.Control(func(fd uintptr) { result = do(int(fd)) }); err != nil {
		result = fs.ErrClosed // the only possible reason
	}
	if result != nil {
		return &fs.PathError{Op: op, Path: at.Name() + "/" + name, Err: result}
	}
	return nil
}

// withinName is within for system calls that change something. It refuses a path of
// several names, which could follow links or leave the directory.
func withinName(at *os.File, op, name string, do func(fd int) error) error {
	return within(at, op, name, func(fd int) error {
		if name == ".." || strings.Contains(name, "/") {
			return fs.ErrInvalid
		}
		return do(fd)
	})
}

// openAt opens a path below a directory without following links.
func openAt(at *os.File, op, name string, flags int, perm uint64) (*os.File, error) {
	how := &unix.OpenHow{
		Flags: uint64(flags | unix.O_CLOEXEC), Mode: perm,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_MAGICLINKS,
	}
	var f *os.File
	err := within(at, op, name, func(fd int) error {
		for {
			got, err := unix.Openat2(fd, name, how)
			if err == unix.EINTR { // EAGAIN is not retried: in a path without .. it means that another process has a lease on the file
				continue
			}
			if err == nil {
				f = os.NewFile(uintptr(got), at.Name()+"/"+name)
			}
			return err
		}
	})
	return f, err
}

func (OSDisk) OpenDir(at *os.File, path string) (*os.File, error) {
	return openAt(at, "open", path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

func (OSDisk) OpenFile(at *os.File, name string) (*os.File, error) {
	return openAt(at, "open", name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

func (OSDisk) Create(at *os.File, name string) (*os.File, error) {
	return openAt(at, "create", name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
}

func (OSDisk) Mkdir(at *os.File, name string, perm fs.FileMode) error {
	return withinName(at, "mkdir", name, func(fd int) error { return unix.Mkdirat(fd, name, uint32(perm.Perm())) })
}

func (OSDisk) Lstat(at *os.File, name string) (s Stat, err error) {
	err = within(at, "lstat", name, func(fd int) error {
		var st unix.Statx_t
		if err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
			return err
		}
		s = Stat{Mode: fileMode(uint32(st.Mode)), Size: int64(st.Size), Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Inode: st.Ino, Links: uint64(st.Nlink),
			Changed: time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec))}
		if st.Mask&unix.STATX_BTIME != 0 {
			s.Born = time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
		}
		return nil
	})
	return s, err
}

func fileMode(mode uint32) fs.FileMode {
	out := fs.FileMode(mode & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if mode&bit != 0 {
			out |= flag
		}
	}
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		out |= fs.ModeDir
	case unix.S_IFLNK:
		out |= fs.ModeSymlink
	default:
		out |= fs.ModeIrregular
	}
	return out
}

func (d OSDisk) List(dir *os.File) ([]string, error) {
	again, err := d.OpenDir(dir, ".") // opens the directory again, to have a separate read position
	if err != nil {
		return nil, err
	}
	names, err := again.Readdirnames(-1)
	return names, errors.Join(err, again.Close())
}

func (OSDisk) Write(f *os.File, data []byte) error      { return OS{}.Write(f, data) }
func (OSDisk) Chmod(f *os.File, perm fs.FileMode) error { return OS{}.Chmod(f, perm) }
func (OSDisk) Sync(f *os.File) error                    { return f.Sync() }
func (OSDisk) Close(f *os.File) error                   { return f.Close() }

func (OSDisk) Move(from *os.File, name string, to *os.File, as string) error {
	return rename("rename", from, name, to, as, unix.RENAME_NOREPLACE)
}

func (OSDisk) Exchange(a *os.File, name string, b *os.File, as string) error {
	return rename("exchange", a, name, b, as, unix.RENAME_EXCHANGE)
}

func rename(op string, from *os.File, name string, to *os.File, as string, flags uint) error {
	var result error
	err := withinName(from, op, name, func(source int) error {
		return withinName(to, op, as, func(target int) error {
			result = unix.Renameat2(source, name, target, as, flags)
			return nil
		})
	})
	if err == nil && result != nil {
		err = &os.LinkError{Op: op, Old: from.Name() + "/" + name, New: to.Name() + "/" + as, Err: result}
	}
	return err
}

func (OSDisk) Remove(at *os.File, name string) error {
	return withinName(at, "remove", name, func(fd int) error { return unix.Unlinkat(fd, name, 0) })
}

func (OSDisk) RemoveDir(at *os.File, name string) error {
	return withinName(at, "rmdir", name, func(fd int) error { return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) })
}
