package workspace

import (
	"context"
	"io/fs"
	"path"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A stamp identifies one version of a file or link of the shared tree without reading it.
type stamp struct {
	Inode    uint64
	Modified int64 // nanoseconds
	Changed  int64
}

func stampOf(seen fileStat) stamp { return stamp{seen.inode, seen.modified, seen.changed} }

// settled returns the stamp of a file that was read at a time, or none if a later write may leave the
// stamp as it is: by the grain of the clock, or through mapped memory that is not yet written back.
func settled(seen fileStat, at time.Time) stamp {
	if at.Sub(time.Unix(0, seen.changed)) < time.Minute {
		return stamp{}
	}
	return stampOf(seen)
}

// A scan compares the shared tree with a snapshot.
type scan struct {
	*snapshot
	root    string
	from    *origin
	without area
	avoid   fileStat // the directory of workspaces
	pool    *pool

	mu     sync.Mutex
	paths  []string         // where the shared tree differs
	stamps map[string]stamp // files with the same content as before and a new stamp
}

// differences lists the paths at which the shared tree differs from the snapshot, at and below some
// paths. It reads only files whose stamp has changed.
func (s *snapshot) differences(ctx context.Context, o Options, from *origin, at []string) (*scan, error) {
	avoid, err := statAt(unix.AT_FDCWD, o.Dir)
	if err != nil {
		return nil, pathError("stat", o.Dir, err)
	}
	c := &scan{snapshot: s, root: o.Root, from: from, without: areaOf(o.Without), avoid: avoid, stamps: map[string]stamp{}}
	err = runPool(ctx, func(p *pool) task {
		c.pool = p
		return func(h *worker) error {
			for _, p := range at {
				if err := c.path(h, p); err != nil {
					return err
				}
			}
			return nil
		}
	})
	return c, err
}

func (c *scan) path(h *worker, p string) error {
	p, err := clean(p)
	if err != nil {
		return err
	}
	if p == "." {
		c.pool.add(c.folder(p, c.nodes))
		return nil
	}
	for at := p; at != "."; at = path.Dir(at) {
		if c.isPassedOver(split(at)) {
			return nil
		}
	}
	was := c.nodes.find(p)
	err = c.from.at(p, func(dir int, name string) error { return c.name(h, dir, path.Dir(p), name, was) })
	if isGone(err) {
		if was != nil {
			c.differs(p)
		}
		return nil
	}
	return pathError("compare", p, err)
}

func (c *scan) isPassedOver(dir, name string) bool {
	at := below(dir, name)
	return isLeftOut(c.repositories, c.without, dir, name) || isLinked(c.root, at, c.nodes.find(at))
}

func (c *scan) differs(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths = append(c.paths, path)
}

func (c *scan) folder(path string, was *node) task {
	return func(h *worker) error {
		dir, err := openFolder(c.from.fd, path, true)
		switch {
		case isClosed(err):
			return nil
		case isGone(err) && path != ".":
			c.differs(path)
			return nil
		case err != nil:
			return pathError("open", path, err)
		}
		defer closeFD(dir)
		there := 0
		err = eachName(dir, func(names []string) error {
			for _, name := range names {
				if h.ctx.Err() != nil {
					return context.Cause(h.ctx)
				}
				child := was.children[name]
				if child != nil {
					there++
				}
				if name == gitName && isRepository(dir) || c.isPassedOver(path, name) {
					continue
				}
				if err := c.name(h, dir, path, name, child); err != nil {
					return pathError("compare", below(path, name), err)
				}
			}
			return nil
		})
		if err != nil && !isGone(err) {
			return pathError("list", path, err)
		}
		if there < len(was.children) {
			return c.missing(dir, path, was)
		}
		return nil
	}
}

// missing finds the names that a directory no longer has.
func (c *scan) missing(dir int, path string, was *node) error {
	for name := range was.children {
		if _, err := statAt(dir, name); isGone(err) {
			c.differs(below(path, name))
		} else if err != nil {
			return pathError("stat", below(path, name), err)
		}
	}
	return nil
}

// name compares one name. The argument was is nil if the snapshot does not have it.
func (c *scan) name(h *worker, dir int, in, name string, was *node) error {
	at, start := below(in, name), time.Now()
	seen, err := statAt(dir, name)
	if isGone(err) {
		if was != nil {
			c.differs(at)
		}
		return nil
	}
	if err != nil {
		return err
	}
	kind := seen.mode.Type()
	switch {
	case seen.inode == c.avoid.inode && seen.dev == c.avoid.dev:
	case was == nil:
		if (kind == 0 || kind == fs.ModeDir || kind == fs.ModeSymlink) && c.refused[at] != stampOf(seen) {
			c.differs(at)
		}
	case kind != was.Mode.Type(), kind == fs.ModeDir && seen.mode.Perm() != was.Mode.Perm():
		c.differs(at)
		if kind == fs.ModeDir && was.isFolder() {
			c.pool.add(c.folder(at, was))
		}
	case kind == fs.ModeDir:
		c.pool.add(c.folder(at, was))
	case was.Origin == stampOf(seen):
	case kind == fs.ModeSymlink:
		text, err := readLink(dir, name)
		return c.verdict(at, stampOf(seen), err == nil && text == was.Link)
	case seen.size != was.Size, seen.mode.Perm() != was.Mode.Perm():
		c.differs(at)
	default:
		sum, err := c.from.sumAt(h, dir, name, seen)
		if isClosed(err) {
			return nil
		}
		return c.verdict(at, settled(seen, start), err == nil && sum == was.Sum)
	}
	return nil
}

// verdict notes that a path differs, or that only its stamp does.
func (c *scan) verdict(at string, seen stamp, same bool) error {
	if !same {
		c.differs(at)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if seen != (stamp{}) {
		c.stamps[at] = seen
	}
	return nil
}

// restamped returns the state with the new stamps.
func (c *scan) restamped() *node {
	nodes, by := c.nodes, &owner{}
	for at, s := range c.stamps {
		n := *nodes.find(at)
		n.Origin = s
		nodes = nodes.with(by, at, &n)
	}
	return nodes
}

// refuse notes paths that are in the shared tree but could not be copied, so that the next scan
// passes over them until they change.
func (s *snapshot) refuse(from *origin, paths []string) error {
	for _, p := range paths {
		if s.nodes.find(p) != nil {
			continue
		}
		err := from.at(p, func(dir int, name string) error {
			seen, err := statAt(dir, name)
			if err == nil {
				s.refused[p] = stampOf(seen)
			}
			return err
		})
		if err != nil && !isGone(err) && !isClosed(err) {
			return pathError("stat", p, err)
		}
	}
	return nil
}
