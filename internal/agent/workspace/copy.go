package workspace

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/disk"
)

// A copier copies a shared tree into a new workspace.
type copier struct {
	*origin
	w      *Workspace
	pool   *pool
	avoid  fileStat        // the directory of workspaces, which may be mounted in the tree
	linked map[string]bool // folders to link

	// These fields are guarded by origin.mu.
	base         *node
	repositories []string // directories with a .git
	closed       []string // directories whose owner lacks rights
}

func (c *copier) run(ctx context.Context) error {
	err := runPool(ctx, func(pool *pool) task {
		c.pool = pool
		return c.folder(".", nil)
	})
	if err != nil {
		return err
	}
	// The innermost directories come first, because a closed directory cannot be changed.
	slices.SortFunc(c.closed, func(a, b string) int { return depth(b) - depth(a) })
	for _, path := range c.closed {
		dir, name := split(path)
		err := opened(c.w.tree, dir, func(fd int) error { return chmodAt(fd, name, c.base.find(path).Mode) })
		if err != nil {
			return pathError("chmod", path, err)
		}
	}
	return nil
}

// folder copies a directory and records it in its parent.
func (c *copier) folder(path string, parent *node) task {
	return func(h *worker) error {
		from, err := openFolder(c.fd, path, true)
		switch {
		case err == nil:
		case path != "." && isGone(err): // the directory is gone or was replaced
			c.doubt(path)
			return nil
		case path != "." && isClosed(err):
			c.report(path, "not copied: "+disk.Reason(err))
			return nil
		default:
			return pathError("open", filepath.Join(c.w.root, path), err)
		}
		defer closeFD(from)
		seen, err := statFD(from)
		if err != nil {
			return pathError("stat", path, err)
		}
		if seen.inode == c.avoid.inode && seen.dev == c.avoid.dev {
			return nil
		}
		to, err := c.makeFolder(path, seen.mode)
		if err != nil {
			return err
		}
		defer closeFD(to)
		n := newFolder(fs.ModeDir | seen.mode.Perm())
		c.note(func() {
			if parent == nil {
				c.base = n
			} else {
				parent.children[filepath.Base(path)] = n
			}
		})
		var names []string
		err = eachName(from, func(part []string) error {
			names = append(names, part...)
			return nil
		})
		switch {
		case isGone(err):
			c.doubt(path)
		case err != nil:
			return pathError("list", path, err)
		}
		return c.names(h, from, to, path, n, names)
	}
}

// makeFolder creates a writable directory. Its final mode is set later.
func (c *copier) makeFolder(path string, mode fs.FileMode) (int, error) {
	perm := mode.Perm() | 0o700
	if path != "." { // the top exists already
		if err := unix.Mkdirat(c.w.tree, path, uint32(perm)); err != nil {
			return -1, pathError("mkdir", path, err)
		}
	}
	fd, err := openFolder(c.w.tree, path, true)
	if err != nil {
		return -1, pathError("open", path, err)
	}
	has, err := statFD(fd)
	if err == nil && has.mode.Perm() != perm {
		err = unix.Fchmod(fd, uint32(perm))
	}
	if err != nil {
		closeFD(fd)
		return -1, pathError("chmod", path, err)
	}
	if path != "." && perm != mode.Perm() {
		c.note(func() { c.closed = append(c.closed, path) })
	}
	return fd, nil
}

func (c *copier) note(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *copier) names(h *worker, from, to int, path string, n *node, names []string) error {
	made := make(map[string]*node, len(names))
	for _, name := range names {
		if h.ctx.Err() != nil {
			return context.Cause(h.ctx)
		}
		at := below(path, name)
		switch {
		case name == gitName && isRepository(from):
			c.note(func() { c.repositories = append(c.repositories, path) })
			continue
		case c.w.isLeftOut(path, name):
			continue
		}
		child, err := c.copyName(h, from, name, to, name, at)
		switch {
		case err != nil:
			return err
		case child == nil:
		case !child.isFolder():
			made[name] = child
		case c.linked[at]:
			if made[name], err = makeLink(to, name, filepath.Join(c.w.root, at)); err != nil {
				return pathError("link", at, err)
			}
		default:
			c.pool.add(c.folder(at, n))
		}
	}
	c.note(func() {
		for name, child := range made {
			n.children[name] = child
		}
	})
	return nil
}

// isRepository reports whether the .git of a directory is a repository or points to one.
// Otherwise it is an ordinary name.
func isRepository(dir int) bool {
	seen, err := statAt(dir, gitName)
	if err != nil || !seen.mode.IsDir() {
		return err == nil
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := statAt(dir, gitName+"/"+name); err != nil {
			return false
		}
	}
	return true
}
