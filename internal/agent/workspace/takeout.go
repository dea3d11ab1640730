package workspace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/git/gitcmd"
)

// A Taken is a change that was taken out of the workspace.
type Taken struct {
	Change

	// File is the path of the agent's file, or of the directory that Survey did not list,
	// until the workspace is closed. It is empty if there was no file. The text of a link
	// is in Change.Now.
	File string
	// Newer is true if the original is lost and the path has the current content of the shared
	// tree.
	Newer bool
}

const takenName = "taken"

// TakeOut reverses the changes at and below these paths and returns them by path. It moves
// the agent's files out of the tree. If it fails, it returns the changes that it has taken
// out so far, and some paths may be missing. No agent may run meanwhile.
func (w *Workspace) TakeOut(ctx context.Context, paths []string) (taken []Taken, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, err
	}
	if paths, err = cleanAll(paths); err != nil {
		return nil, err
	}
	all, err := w.changes(ctx, foldersAbove(paths))
	if err != nil {
		return nil, err
	}
	chosen := areaOf(paths)
	for _, c := range all {
		if chosen.has(c.Path) {
			taken = append(taken, Taken{Change: c})
		}
	}
	if len(taken) == 0 {
		return nil, nil
	}
	if err := w.beginEdit(ctx); err != nil {
		return nil, err
	}
	from, err := openOrigin(w.root, w.sums)
	if err != nil {
		return nil, err
	}
	defer from.close()
	if err := unix.Mkdirat(w.top, takenName, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, pathError("mkdir", filepath.Join(w.dir, takenName), err)
	}
	t := &takeOut{w: w, h: newWorker(ctx), from: from}
	if t.aside, err = openFolder(w.top, takenName, false); err != nil {
		return nil, pathError("open", filepath.Join(w.dir, takenName), err)
	}
	defer closeFD(t.aside)
	err = t.run(taken)
	return taken, errors.Join(err, w.save())
}

type takeOut struct {
	w     *Workspace
	h     *worker
	from  *origin
	aside int // the directory taken
}

// run moves the agent's files out, innermost first, and then restores the originals, outermost
// first.
func (t *takeOut) run(taken []Taken) error {
	for i := range slices.Backward(taken) { // sorted by path: a directory comes before its content
		if taken[i].Now != nil {
			if err := t.remove(&taken[i]); err != nil {
				return err
			}
		}
	}
	for i := range taken {
		if t.h.ctx.Err() != nil {
			return context.Cause(t.h.ctx)
		}
		if taken[i].Was == nil {
			continue
		}
		if err := t.restore(&taken[i]); err != nil {
			return err
		}
	}
	return nil
}

// remove moves the agent's version of a path out of the tree.
func (t *takeOut) remove(c *Taken) error {
	err := t.w.at(c.Path, func(dir int, name string) error {
		switch {
		case c.Now.Mode.IsRegular(), c.Whole:
			var random [8]byte
			rand.Read(random[:]) // never fails
			as := hex.EncodeToString(random[:])
			if err := moveAway(dir, name, t.aside, as); err != nil {
				return err
			}
			c.File = filepath.Join(t.w.topDir(), takenName, as)
			return nil
		case !c.Now.Mode.IsDir():
			return unix.Unlinkat(dir, name, 0)
		case c.Kind == ModeChanged:
			return nil
		}
		return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	})
	switch {
	case isInUse(err):
		return &lockkeeper.RefusedError{Act: "taking " + c.Path + " out of workspace " + t.w.dir,
			Reason: "a process still writes there", Next: "stop the agent first"}
	case err != nil && !isGone(err): // the directory may already be gone
		return pathError("take out", c.Path, err)
	}
	return t.pruneNew(path.Dir(c.Path))
}

// pruneNew removes empty directories that the agent created.
func (t *takeOut) pruneNew(p string) error {
	for ; p != "." && t.w.base.find(p) == nil; p = path.Dir(p) {
		err := t.w.at(p, func(dir int, name string) error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
		if isInUse(err) {
			return nil
		}
		if err != nil && !isGone(err) {
			return pathError("remove", p, err)
		}
	}
	return nil
}

func (t *takeOut) restore(c *Taken) error {
	was := t.w.base.find(c.Path)
	blocked, err := t.w.makeParents(t.from, c.Path)
	switch {
	case err != nil:
		return err
	case blocked:
		return &lockkeeper.RefusedError{Act: "restoring " + c.Path + " in workspace " + t.w.dir,
			Reason: "a parent is not a directory", Next: "take out the change of the parent as well"}
	case was.isFolder():
		return t.restoreFolder(c.Path, was)
	case was.Mode.IsRegular():
		return t.restoreFile(c, was)
	}
	if err := t.w.dropTemp(); err != nil {
		return err
	}
	n, err := makeLink(t.w.top, tempName, was.Link)
	if err != nil {
		return err
	}
	return t.w.place(c.Path, n)
}

func (t *takeOut) restoreFolder(p string, was *node) error {
	dir, err := t.w.openOwn(p)
	if isGone(err) {
		return t.w.makeFolder(p, was.Mode)
	}
	if err == nil {
		err = unix.Fchmod(dir, uint32(was.Mode.Perm()))
		closeFD(dir)
	}
	return pathError("chmod", p, err)
}

// restoreFile restores a file from the shared tree or from git.
func (t *takeOut) restoreFile(c *Taken, was *node) error {
	for _, find := range []func(string, *node) (*node, error){t.fromShared, t.fromGit} {
		n, err := find(c.Path, was)
		if err != nil {
			return err
		}
		if n == nil {
			continue
		}
		if err := t.dress(was); err != nil {
			return errors.Join(pathError("restore", c.Path, err), t.w.dropTemp())
		}
		return t.w.place(c.Path, n)
	}
	c.Newer = true
	t.w.record(c.Path, nil)
	return newRefresher(t.h.ctx, t.w, t.from).bring([]string{c.Path})
}

// fromShared copies the shared file to the temporary name, if it is still the original.
func (t *takeOut) fromShared(p string, was *node) (*node, error) {
	n, err := newRefresher(t.h.ctx, t.w, t.from).fetch(p)
	if err != nil || n == nil || n.Mode.IsRegular() && n.Sum == was.Sum {
		return n, err
	}
	return nil, t.w.dropTemp()
}

// fromGit copies the file of the workspace's commit to the temporary name, if it is the
// original.
func (t *takeOut) fromGit(p string, was *node) (n *node, err error) {
	if t.w.commit == "" {
		return nil, nil
	}
	f, err := t.w.newTemp()
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if n == nil {
			err = errors.Join(err, t.w.dropTemp())
		}
	}()
	r := &repository{work: t.w.root}
	var refused *gitcmd.Error
	switch err := r.git().Run(t.h.ctx, nil, f, "cat-file", "blob", t.w.commit+":"+p); {
	case errors.As(err, &refused):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return nil, err
	}
	sum, err := t.h.hashFD(int(f.Fd()), was.Size)
	if err != nil || sum != was.Sum {
		return nil, err
	}
	return &node{entry: entry{Sum: sum}}, nil
}

// dress sets the time and permissions of the original.
func (t *takeOut) dress(was *node) error {
	err := putTime(t.w.top, tempName, was.Modified)
	if err == nil {
		err = chmodAt(t.w.top, tempName, was.Mode)
	}
	return err
}
