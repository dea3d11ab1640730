package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lockkeeper/durable"
)

// put copies a path from the shared tree.
func (b *refresher) put(p string) error {
	seen, ok, err := b.shared(p)
	if err != nil || !ok || b.complete[p] || b.turned.has(p) {
		return err
	}
	was := b.w.base.find(p)
	switch {
	case was != nil && was.Mode.Type() != seen.mode.Type(): // otherwise clear has handled the path
		b.turned[p] = true
		return nil
	case seen.mode.IsDir():
		return b.putFolder(p, was, seen.mode)
	case was != nil && b.isKnown(p, was, seen):
		return nil
	}
	now, err := b.fetch(p)
	switch {
	case err != nil || now == nil:
		return err
	case now.isFolder():
		b.turned[p] = true
		return nil
	case was == nil || !was.holds(&now.entry):
		b.moved.add(p, false)
	}
	take, err := b.decide(p, was, now)
	if err == nil && take {
		return b.w.place(p, now)
	}
	return errors.Join(err, b.w.dropTemp())
}

// isKnown reports whether a path of the shared tree is still as copied. It returns false for a
// file that cannot be read.
func (b *refresher) isKnown(p string, was *node, seen fileStat) (known bool) {
	if was.Mode.Type() != seen.mode.Type() || seen.mode.IsRegular() && (was.Mode.Perm() != seen.mode.Perm() || was.Size != seen.size) {
		return false
	}
	err := b.from.at(p, func(dir int, name string) error {
		if !seen.mode.IsRegular() {
			text, err := readLink(dir, name)
			known = text == was.Link
			return err
		}
		sum, err := b.from.sumAt(b.h, dir, name, seen)
		known = sum == was.Sum
		return err
	})
	return known && err == nil
}

// fetch copies a path of the shared tree to the temporary name, unless it is a directory. It
// returns nil if the path is gone.
func (b *refresher) fetch(p string) (*node, error) {
	if err := b.w.dropTemp(); err != nil {
		return nil, err
	}
	var n *node
	var failed error
	err := b.from.at(p, func(dir int, name string) error {
		n, failed = b.from.copyName(b.h, dir, name, b.w.top, tempName, p)
		return nil
	})
	switch {
	case isGone(err):
		return nil, nil
	case err != nil:
		return nil, pathError("open", p, err)
	case failed != nil:
		return nil, errors.Join(failed, b.w.dropTemp())
	}
	return n, nil
}

// decide reports whether to use the version of the shared tree. If the agent made the same change,
// decide records the change as copied.
func (b *refresher) decide(p string, was, now *node) (take bool, err error) {
	kind, mine, err := b.w.inspect(b.h, p, was)
	if err != nil {
		return false, err
	}
	if kind != unchanged {
		both := &node{entry: now.entry}
		both.Young = true // a young file is always compared by content
		differs, _, err := b.w.inspect(b.h, p, both)
		if err != nil {
			return false, err
		}
		if differs != unchanged {
			return false, b.conflict(p, kind, was, mine)
		}
		now = both
	}
	blocked, err := b.w.makeParents(b.from, p)
	switch {
	case err != nil:
		return false, err
	case blocked:
		return false, b.conflict(p, Deleted, was, nil)
	case kind == unchanged:
		return true, nil
	}
	b.w.record(p, now)
	return false, nil
}

func (b *refresher) putFolder(p string, was *node, mode fs.FileMode) error {
	if was == nil || was.Mode.Perm() != mode.Perm() {
		b.moved.add(p, was == nil)
	}
	kind, mine, err := b.w.inspect(b.h, p, was)
	if err != nil {
		return err
	}
	if was == nil && kind == Created && mine.Mode.IsDir() { // both sides created this directory
		b.w.record(p, newFolder(mine.Mode))
		return nil
	}
	switch {
	case was == nil && kind == Created:
		return b.conflict(p, kind, was, mine)
	case was == nil:
		if blocked, err := b.w.makeParents(b.from, p); blocked || err != nil {
			return err // the paths below the blocking one are reported one by one
		}
		return b.w.makeFolder(p, mode)
	case was.Mode.Perm() == mode.Perm() || kind == Deleted || kind == TypeChanged:
		return nil // only the agent changed this path
	case kind == ModeChanged && mine.Mode.Perm() != mode.Perm():
		return b.conflict(p, kind, was, mine)
	}
	err = b.w.at(p, func(dir int, name string) error { return chmodAt(dir, name, mode) })
	b.w.recordMode(p, fs.ModeDir|mode.Perm())
	return pathError("chmod", p, err)
}

// tempName is the name of a new file before it is renamed into the tree.
const tempName = durable.TempPrefix + "new"

func (w *Workspace) dropTemp() error {
	if err := unix.Unlinkat(w.top, tempName, 0); err != nil && !isGone(err) {
		return pathError("remove", filepath.Join(w.dir, tempName), err)
	}
	return nil
}

// newTemp creates an empty temporary file.
func (w *Workspace) newTemp() (*os.File, error) {
	if err := w.dropTemp(); err != nil {
		return nil, err
	}
	name := filepath.Join(w.dir, tempName)
	fd, err := openAt(w.top, tempName, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// place renames the temporary file to its path, replaces any file there, and records it.
func (w *Workspace) place(p string, n *node) error {
	err := w.at(p, func(dir int, name string) error {
		if err := unix.Renameat(w.top, tempName, dir, name); err != nil {
			return err
		}
		has, err := statAt(dir, name)
		n.note(has)
		return err
	})
	if err != nil {
		return errors.Join(pathError("put in place", p, err), w.dropTemp())
	}
	n.Young = true
	w.record(p, n)
	return nil
}

// at calls the function do with the directory and the name of a path in the workspace, even if the
// directory is read-only.
func (w *Workspace) at(p string, do func(dir int, name string) error) error {
	parent, name := split(p)
	dir, err := w.openOwn(parent)
	if err != nil {
		return err
	}
	defer closeFD(dir)
	if err = do(dir, name); !errors.Is(err, unix.EACCES) {
		return err
	}
	seen, err := statFD(dir)
	if err != nil {
		return err
	}
	if err := unix.Fchmod(dir, uint32(seen.mode.Perm()|0o700)); err != nil {
		return err
	}
	return errors.Join(do(dir, name), unix.Fchmod(dir, uint32(seen.mode.Perm())))
}

// makeFolder creates a directory and records it.
func (w *Workspace) makeFolder(p string, mode fs.FileMode) error {
	err := w.at(p, func(dir int, name string) error {
		if err := unix.Mkdirat(dir, name, 0o700); err != nil {
			return err
		}
		return chmodAt(dir, name, mode)
	})
	if err == nil && !w.base.find(p).isFolder() {
		w.record(p, newFolder(fs.ModeDir|mode.Perm()))
	}
	return pathError("mkdir", p, err)
}

// makeParents creates the missing parent directories of a path. It returns blocked if one of
// them is not a directory.
func (w *Workspace) makeParents(from *origin, p string) (blocked bool, err error) {
	dir := path.Dir(p)
	if dir == "." {
		return false, nil
	}
	if blocked, err := w.makeParents(from, dir); blocked || err != nil {
		return blocked, err
	}
	was := w.base.find(dir)
	var seen fileStat
	err = w.at(dir, func(parent int, name string) (err error) {
		seen, err = statAt(parent, name)
		return err
	})
	switch {
	case err == nil && seen.mode.IsDir():
		if !was.isFolder() {
			w.record(dir, newFolder(fs.ModeDir|seen.mode.Perm()))
		}
		return false, nil
	case err == nil:
		return true, nil
	case !isGone(err):
		return false, pathError("stat", dir, err)
	case was.isFolder():
		return false, w.makeFolder(dir, was.Mode)
	}
	mode := fs.FileMode(0o755)
	if shared, err := openFolder(from.fd, dir, true); err == nil {
		seen, err := statFD(shared)
		closeFD(shared)
		if err != nil {
			return false, pathError("stat", dir, err)
		}
		mode = seen.mode
	}
	return false, w.makeFolder(dir, mode)
}
