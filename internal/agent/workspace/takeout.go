//go:build unix

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
)

// Taken is a change that was taken out of the workspace.
type Taken struct {
	Change

	// File has what the agent's file held, or is the directory that Survey did not list.
	// It stays until the workspace is closed.
	// Empty: there was no file. What a link held is in Change.Now.
	File string
	// Patch turns what was copied into what the agent made of it; `git apply` takes
	// it. Nil where it is no text, or too long, or what was copied is not known.
	Patch []byte

	// Restored is what is at the path now; nil: nothing.
	Restored *State
	// Newer says that what was copied is nowhere any more, and that what the shared
	// tree holds now was put in its place.
	Newer bool
}

const takenName = "taken"

// TakeOut undoes the changes at these paths and below them, so that what is there
// is what was copied, and returns them by path. What the agent made there is moved
// aside. When it fails, those that were taken out are returned with the error, and
// the workspace may be in between. No agent should be at work meanwhile.
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
	from, err := openOrigin(w.root, w.sums)
	if err != nil {
		return nil, err
	}
	defer from.close()
	if err := unix.Mkdirat(w.top, takenName, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, pathError("mkdir", filepath.Join(w.dir, takenName), err)
	}
	t := &takeOut{w: w, h: newHand(ctx), from: from, patches: maxPatches}
	if t.aside, err = openFolder(w.top, takenName, false); err != nil {
		return nil, pathError("open", filepath.Join(w.dir, takenName), err)
	}
	defer closeFD(t.aside)
	err = t.run(taken)
	return taken, errors.Join(err, w.save())
}

// takeOut is one undoing of changes.
type takeOut struct {
	w       *Workspace
	h       *hand
	from    *origin
	aside   int // the directory of what was taken
	patches int // how many bytes of patches may still be made
}

// run moves aside what is there, from below, and then puts back what was there,
// from above.
func (t *takeOut) run(taken []Taken) error {
	for i := range slices.Backward(taken) { // by path: what is in a directory comes after it
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
		var err error
		if taken[i].Was != nil {
			err = t.restore(&taken[i])
		} else {
			err = t.describe(&taken[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove takes away what the agent made of a path.
func (t *takeOut) remove(c *Taken) error {
	name := path.Base(c.Path)
	err := t.w.inFolder(path.Dir(c.Path), func(dir int) error {
		switch {
		case c.Now.Mode.IsRegular(), c.Whole:
			var random [8]byte
			rand.Read(random[:]) // never fails
			as := hex.EncodeToString(random[:])
			if err := moveAway(dir, name, t.aside, as); err != nil {
				return err
			}
			c.File = filepath.Join(t.w.dir, takenName, as)
			return t.makeReadable(as)
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
			Reason: "something is still written there", Next: "end the agent first"}
	case err != nil && !isGone(err): // what is gone needs no taking
		return pathError("take out", c.Path, err)
	}
	return t.pruneNew(path.Dir(c.Path))
}

// makeReadable lets its owner read a file that was taken, unless that would change
// it under another name as well.
func (t *takeOut) makeReadable(name string) error {
	seen, err := lookAt(t.aside, name)
	if err != nil || seen.mode&0o400 != 0 || seen.links > 1 {
		return err
	}
	return chmodAt(t.aside, name, seen.mode|0o400)
}

// pruneNew removes directories that the agent made and in which nothing is left.
func (t *takeOut) pruneNew(p string) error {
	for ; p != "." && t.w.base.find(p) == nil; p = path.Dir(p) {
		err := t.w.inFolder(path.Dir(p), func(dir int) error { return unix.Unlinkat(dir, path.Base(p), unix.AT_REMOVEDIR) })
		if isInUse(err) {
			return nil
		}
		if err != nil && !isGone(err) {
			return pathError("remove", p, err)
		}
	}
	return nil
}

// restore puts back what was copied.
func (t *takeOut) restore(c *Taken) error {
	was := t.w.base.find(c.Path)
	blocked, err := t.w.makeParents(t.from, c.Path)
	switch {
	case err != nil:
		return err
	case blocked:
		return &lockkeeper.RefusedError{Act: "putting back " + c.Path + " in workspace " + t.w.dir,
			Reason: "something that is no directory lies above it", Next: "take that out as well"}
	case was.isFolder():
		err = t.restoreFolder(c.Path, was)
	case was.Mode.IsRegular():
		return t.restoreFile(c, was)
	default:
		if err = t.w.dropTemp(); err == nil {
			var n *node
			if n, err = makeLink(t.w.top, tempName, was.Link); err == nil {
				err = t.w.place(c.Path, n)
			}
		}
	}
	c.Restored = was.state()
	return err
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

// restoreFile puts back a file with the content that was copied, from wherever
// that can still be found.
func (t *takeOut) restoreFile(c *Taken, was *node) error {
	for _, find := range []func(string, *node) (*node, error){t.fromShared, t.fromGit} {
		n, err := find(c.Path, was)
		if err != nil {
			return err
		}
		if n == nil {
			continue
		}
		if err = t.describe(c); err == nil {
			err = t.dress(was)
		}
		if err != nil {
			return errors.Join(pathError("put back", c.Path, err), t.w.dropTemp())
		}
		c.Restored = was.state()
		return t.w.place(c.Path, n)
	}
	c.Newer = true
	t.w.base.set(c.Path, nil)
	err := newBringing(t.h.ctx, t.w, t.from).bring([]string{c.Path})
	if n := t.w.base.find(c.Path); n != nil {
		c.Restored = n.state()
	}
	return err
}

// fromShared makes a copy of the shared file beside the tree, if it is still the
// one that was copied.
func (t *takeOut) fromShared(p string, was *node) (*node, error) {
	n, err := newBringing(t.h.ctx, t.w, t.from).fetch(p)
	if err != nil || n == nil || n.Mode.IsRegular() && n.Sum == was.Sum {
		return n, err
	}
	return nil, t.w.dropTemp()
}

// fromGit makes a copy of what a file was in the commit on which the workspace is
// based, if that is what was copied.
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
	var refused *gitError
	switch err := r.run(t.h.ctx, f, "cat-file", "blob", t.w.commit+":"+p); {
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

// dress gives what is to be put back the time and permissions that the copy had.
func (t *takeOut) dress(was *node) error {
	err := putTime(t.w.top, tempName, was.Modified)
	if err == nil {
		err = chmodAt(t.w.top, tempName, was.Mode)
	}
	return err
}
