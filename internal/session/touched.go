package session

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// touchedSince lists which of the paths hold something newer than a moment, or nothing
// where something was removed since. Of a directory it is what is so below it.
func (b *Book) touchedSince(ctx context.Context, paths []string, since int64) (touched []string, err error) {
	root, err := b.app.Root.Handle()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	fd := int(root.Fd())
	var s unix.Stat_t
	for _, p := range paths {
		switch err := unix.Fstatat(fd, p, &s, unix.AT_SYMLINK_NOFOLLOW); {
		case err == nil && s.Mode&unix.S_IFMT == unix.S_IFDIR:
			below, err := b.touchedBelow(ctx, p, since)
			if err != nil {
				return nil, err
			}
			touched = append(touched, below...)
		case err == nil && s.Ctim.Nano() >= since:
			touched = append(touched, p)
		case err == nil:
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
			if removed(fd, p, since) {
				touched = append(touched, p)
			}
		default:
			return nil, &os.PathError{Op: "stat", Path: p, Err: err}
		}
	}
	return touched, nil
}

// swapped lists, besides those known, the files of sessions that are others than they left
// there, however old: a directory that was moved into the place of another brings such. Of
// what a session is writing itself nobody can tell.
func (b *Book) swapped(records map[string]record, known []string, now int64) (paths []string) {
	var s unix.Stat_t
	for _, r := range records {
		if r.GrantID == "" {
			continue
		}
		for p, was := range r.Files {
			if was.Inode == 0 || r.mayWrite(p, now) || slices.Contains(known, p) {
				continue
			}
			if err := unix.Lstat(b.at(p), &s); err == nil && s.Ino != was.Inode {
				paths = append(paths, p)
			}
		}
	}
	return paths
}

// removed reports whether a directory above a missing path changed since a moment: the
// nearest one that is there.
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

// touchedBelow is touchedSince below a directory that is held as a whole. A name that was
// removed there is not known any more: it is the directory then that was touched, unless
// something new in it says why. Repositories change with every look at them, and what this
// program keeps is nobody's.
func (b *Book) touchedBelow(ctx context.Context, dir string, since int64) (touched []string, err error) {
	lost := map[string]bool{} // directories of which a name may have been removed
	err = filepath.WalkDir(b.at(dir), func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil // gone meanwhile, or nobody's here to see
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == ".lockkeeper") {
			return fs.SkipDir
		}
		rel, err := filepath.Rel(b.app.Root.Dir(), at)
		if err != nil {
			return err
		}
		var s unix.Stat_t
		switch err := unix.Lstat(at, &s); {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		case err != nil:
			return &os.PathError{Op: "stat", Path: at, Err: err}
		case d.IsDir() && s.Mtim.Nano() >= since:
			lost[rel] = true
		case s.Ctim.Nano() >= since && !d.IsDir():
			delete(lost, path.Dir(rel))
			touched = append(touched, rel)
		}
		return nil
	})
	return append(touched, slices.Sorted(maps.Keys(lost))...), err
}
