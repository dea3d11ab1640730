package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/overlay"
)

// An entry is a name in an open directory.
type entry struct {
	dir  *os.File
	name string
}

func (e entry) close() {
	if e.dir != nil {
		e.dir.Close()
	}
}

func (e entry) at() int { return int(e.dir.Fd()) }

func (e entry) stat() (info unix.Stat_t, err error) {
	err = unix.Fstatat(e.at(), e.name, &info, unix.AT_SYMLINK_NOFOLLOW)
	return info, err
}

// open opens a directory to list it.
func (e entry) open() (*os.File, error) {
	fd, err := unix.Openat(e.at(), e.name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), e.name), nil
}

// unlock lets the owner change a directory until the returned function is called.
func (e entry) unlock(info unix.Stat_t) (lock func()) {
	mode := info.Mode & 0o7777
	if mode&0o700 == 0o700 || unix.Fchmodat(e.at(), e.name, mode|0o700, 0) != nil {
		return func() {}
	}
	return func() { unix.Fchmodat(e.at(), e.name, mode, 0) }
}

func isDir(info unix.Stat_t) bool { return info.Mode&unix.S_IFMT == unix.S_IFDIR }

// move does what rename(2) does, where the kernel refuses to rename a directory. It makes new
// directories with hard links to all files under a temporary name. Until that is complete, the
// source does not change. Then the new directory gets its name, and the source is removed.
func (r *renamer) move(from, to entry, flags uint32) error {
	if flags&unix.RENAME_EXCHANGE != 0 {
		return r.exchange(from, to)
	}
	if target, err := to.open(); err == nil {
		names, _ := target.Readdirnames(1)
		target.Close()
		if len(names) > 0 {
			return unix.ENOTEMPTY
		}
	}
	made, err := r.copyBeside(from, to.dir)
	if err != nil {
		return err
	}
	if err := made.rename(to, flags); err != nil {
		return errors.Join(err, made.discard())
	}
	return r.drop(from, to)
}

// exchange does what rename(2) does with RENAME_EXCHANGE.
func (r *renamer) exchange(a, b entry) error {
	newA, err := r.copyBeside(b, a.dir)
	if err != nil {
		return err
	}
	newB, err := r.copyBeside(a, b.dir)
	if err != nil {
		return errors.Join(err, newA.discard())
	}
	for _, step := range []func() error{
		func() error { return r.drop(a, newB) },
		func() error { return newA.rename(a, 0) },
		func() error { return r.drop(b, a) },
		func() error { return newB.rename(b, 0) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// copyBeside makes a copy with a temporary name, or nothing.
func (r *renamer) copyBeside(from entry, dir *os.File) (entry, error) {
	made := entry{dir, fmt.Sprintf(".rename-%x", rand.Uint64())}
	err := r.copy(from, made)
	if err == nil {
		return made, nil
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EMLINK) {
		err = unix.EXDEV // programs then copy by themselves
	}
	return made, errors.Join(err, made.discard())
}

// copy links a file, or makes a directory with links to everything in it.
func (r *renamer) copy(from, to entry) error {
	if err := r.yield(); err != nil {
		return err
	}
	info, err := from.stat()
	if err != nil {
		return err
	}
	if !isDir(info) {
		return unix.Linkat(from.at(), from.name, to.at(), to.name, 0)
	}
	if err := unix.Mkdirat(to.at(), to.name, 0o700); err != nil {
		return err
	}
	defer from.unlock(info)()
	source, target, err := openBoth(from, to)
	if err != nil {
		return err
	}
	defer source.Close()
	defer target.Close()
	names, err := source.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.copy(entry{source, name}, entry{target, name}); err != nil {
			return err
		}
	}
	if err := copyAttributes(source, target, info); err != nil {
		return err
	}
	return unix.UtimesNanoAt(to.at(), to.name, []unix.Timespec{info.Atim, info.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// openBoth opens two directories.
func openBoth(from, to entry) (source, target *os.File, err error) {
	if source, err = from.open(); err != nil {
		return nil, nil, err
	}
	if target, err = to.open(); err != nil {
		return nil, nil, errors.Join(err, source.Close())
	}
	return source, target, nil
}

// copyAttributes gives a directory the owner, the mode and the extended attributes of another one.
func copyAttributes(source, target *os.File, info unix.Stat_t) error {
	if err := copyExtended(int(source.Fd()), int(target.Fd())); err != nil {
		return err
	}
	var made unix.Stat_t
	if err := unix.Fstat(int(target.Fd()), &made); err != nil {
		return err
	}
	if made.Uid != info.Uid || made.Gid != info.Gid {
		if err := unix.Fchown(int(target.Fd()), int(info.Uid), int(info.Gid)); err != nil {
			return err
		}
	}
	return unix.Fchmod(int(target.Fd()), info.Mode&0o7777)
}

// sameFile reports whether two names stand for one file. Links to one file may have different
// inode numbers in an overlay.
func sameFile(a, b unix.Stat_t) bool {
	return a.Mode == b.Mode && a.Size == b.Size && a.Mtim == b.Mtim && a.Ctim == b.Ctim && a.Uid == b.Uid && a.Gid == b.Gid && a.Rdev == b.Rdev
}

func copyExtended(source, target int) error {
	names := make([]byte, 64<<10) // the kernel's limit for names and for a value
	size, err := unix.Flistxattr(source, names)
	if errors.Is(err, unix.EOPNOTSUPP) || size == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	value := make([]byte, 64<<10)
	for name := range bytes.SplitSeq(bytes.TrimRight(names[:size], "\x00"), []byte{0}) {
		n, err := unix.Fgetxattr(source, string(name), value)
		if err == nil {
			err = unix.Fsetxattr(target, string(name), value[:n], 0)
		}
		if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EOPNOTSUPP) { // the system sets labels itself
			return err
		}
	}
	return nil
}

// discard removes a copy.
func (e entry) discard() error {
	path := filepath.Join(fmt.Sprint("/proc/self/fd/", e.dir.Fd()), e.name)
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir() {
		err = errors.Join(os.Chmod(path, 0o700), overlay.Empty(path))
	}
	return errors.Join(err, os.Remove(path))
}

// drop removes a source of which there is a copy. What has changed in it since then is moved into
// the copy.
func (r *renamer) drop(from, to entry) error {
	if err := r.yield(); err != nil && !errors.Is(err, unix.EINTR) { // this part does not stop when the command ends
		return err
	}
	info, err := from.stat()
	if errors.Is(err, unix.ENOENT) {
		return nil // another process removed it
	}
	if err != nil {
		return err
	}
	made, err := to.stat()
	if !isDir(info) {
		if err == nil && !sameFile(info, made) {
			err = unix.Unlinkat(to.at(), to.name, 0)
			made = unix.Stat_t{}
		}
		if made.Ino == 0 && (err == nil || errors.Is(err, unix.ENOENT)) {
			err = unix.Linkat(from.at(), from.name, to.at(), to.name, 0)
		}
		if err != nil {
			return err
		}
		return unix.Unlinkat(from.at(), from.name, 0)
	}
	if errors.Is(err, unix.ENOENT) {
		return from.rename(to, 0)
	}
	from.unlock(info)
	defer to.unlock(made)()
	source, target, err := openBoth(from, to)
	if err != nil {
		return err
	}
	defer source.Close()
	defer target.Close()
	for range 100 { // other processes may still be making files
		names, err := source.Readdirnames(-1)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := r.drop(entry{source, name}, entry{target, name}); err != nil {
				return err
			}
		}
		err = unix.Unlinkat(from.at(), from.name, unix.AT_REMOVEDIR)
		if !errors.Is(err, unix.ENOTEMPTY) || len(names) == 0 {
			return err
		}
		if _, err := source.Seek(0, 0); err != nil {
			return err
		}
	}
	return unix.ENOTEMPTY
}
