package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// touchedSince lists the paths that were changed or removed since a moment, without duplicates.
// For a directory it lists the changes below it.
func (b *Registry) touchedSince(ctx context.Context, paths []string, since int64) (touched []string, err error) {
	root, err := b.app.Root.Handle()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	fd := int(root.Fd())
	dirs := map[string]bool{}
	var s unix.Stat_t
	for _, p := range paths {
		switch err := unix.Fstatat(fd, p, &s, unix.AT_SYMLINK_NOFOLLOW); {
		case err == nil && s.Mode&unix.S_IFMT == unix.S_IFDIR:
			dirs[p] = true
		case err == nil && s.Ctim.Nano() >= since:
			touched = append(touched, p)
		case err == nil:
		case isAway(err):
			if removed(fd, p, since) {
				touched = append(touched, p)
			}
		default:
			return nil, &os.PathError{Op: "stat", Path: p, Err: err}
		}
	}
	for dir := range dirs {
		if isBelow(dirs, dir) {
			continue
		}
		below, err := touchedBelow(ctx, fd, dir, since)
		if err != nil {
			return nil, err
		}
		touched = append(touched, below...)
	}
	slices.Sort(touched)
	return slices.Compact(touched), nil
}

func isBelow(dirs map[string]bool, p string) bool {
	for up, ok := lockkeeper.Parent(p); ok; up, ok = lockkeeper.Parent(up) {
		if dirs[up] {
			return true
		}
	}
	return false
}

// swapped lists further files whose inode is not the one that their session left, however old they
// are: a directory that was moved over another brings such files. It skips files that their
// session may be writing.
func (b *Registry) swapped(records map[string]record, known []string, now int64) (paths []string) {
	var s unix.Stat_t
	for _, r := range records {
		if r.GrantID == "" {
			continue
		}
		for p, was := range r.Files {
			if was.Inode == 0 || r.mayWrite(p, now) || slices.Contains(known, p) {
				continue
			}
			if err := unix.Lstat(b.at(p), &s); err == nil && s.Ino != was.expected().Inode {
				paths = append(paths, p)
			}
		}
	}
	return paths
}

// removed reports whether the nearest existing directory above a missing path changed since a
// moment.
func removed(root int, p string, since int64) bool {
	var s unix.Stat_t
	for p != "." {
		p = path.Dir(p)
		if err := unix.Fstatat(root, p, &s, 0); err == nil {
			return s.Ctim.Nano() >= since
		}
	}
	return false
}

// touchedBelow does the same as touchedSince below a directory that is held as a whole. It skips
// repositories, which change with every access, and this program's own directory.
func touchedBelow(ctx context.Context, root int, dir string, since int64) (touched []string, err error) {
	for folders := []string{dir}; len(folders) > 0 && err == nil; err = errors.Join(err, ctx.Err()) {
		var here, deeper []string
		last := len(folders) - 1
		here, deeper, err = touchedIn(root, folders[last], since)
		touched, folders = append(touched, here...), append(folders[:last], deeper...)
	}
	return touched, err
}

// touchedIn examines one directory and lists its subdirectories. The name of a removed file is
// unknown, so the directory itself counts as touched. A directory that was moved into the examined
// one counts as touched, too, which only its ctime shows. It skips directories that are gone or
// unreadable.
func touchedIn(root int, dir string, since int64) (touched, folders []string, err error) {
	fd, err := unix.Openat(root, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case isAway(err), errors.Is(err, fs.ErrPermission):
		return nil, nil, nil
	case err != nil:
		return nil, nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return nil, nil, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	if s.Ctim.Nano() >= since {
		touched = append(touched, dir)
	}
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		at := path.Join(dir, name)
		switch err := unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW); {
		case isAway(err), name == ".git", name == ".lockkeeper":
		case err != nil:
			return nil, nil, &os.PathError{Op: "stat", Path: at, Err: err}
		case s.Mode&unix.S_IFMT == unix.S_IFDIR:
			folders = append(folders, at)
		case s.Ctim.Nano() >= since:
			touched = append(touched, at)
		}
	}
	return touched, folders, nil
}

// isAway reports whether a path no longer exists: a part of it is missing, or is no longer a
// directory.
func isAway(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}
