package workspace

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable"
)

// maxCreated is the default of Workspace.maxCreated.
const maxCreated = 200_000

// Changes lists the differences from the copied state, by path, without .git and .lockkeeper.
func (w *Workspace) Changes(ctx context.Context) ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w.changes(ctx, nil)
}

// changes does the work of Changes. If split is not nil, it does not list large new directories,
// except those in split.
func (w *Workspace) changes(ctx context.Context, split map[string]bool) ([]Change, error) {
	s := &search{w: w, split: split}
	err := runPool(ctx, func(c *pool) task {
		s.pool = c
		return s.folder(".", w.base, w.layered != nil)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.found, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return s.found, nil
}

// A search compares the workspace with the copied state.
type search struct {
	w     *Workspace
	pool  *pool
	split map[string]bool // directories that are always listed; nil for all

	mu      sync.Mutex
	found   []Change
	created int
}

func (s *search) report(c Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, c)
	if c.Kind == Created {
		s.created++
	}
	switch {
	case s.created > s.w.maxCreated:
		return s.refuse(fmt.Sprintf("there are more than %d new names", s.w.maxCreated))
	case len(c.Path) > maxPath:
		return s.refuse(fmt.Sprintf("the path %q… is longer than %d bytes", c.Path[:80], maxPath))
	}
	return nil
}

func (s *search) refuse(reason string) error {
	return &lockkeeper.RefusedError{Act: "listing the changes in workspace " + s.w.dir, Reason: reason,
		Next: "inspect the new files, or close the workspace to remove them"}
}

// folder compares a directory with its copied state, or with nil. With layered, names that are
// missing in the directory are those of the layers below.
func (s *search) folder(path string, was *node, layered bool) task {
	return func(h *worker) error {
		h.shared = s.w.layered != nil
		if len(path) > maxPath {
			return s.report(newChange(path, Created, nil, nil))
		}
		dir, err := s.w.openOwn(path)
		switch {
		case isGone(err) && path != ".":
			return s.missing(path, was) // the directory was removed since it was listed
		case err != nil:
			return pathError("open", path, err)
		}
		defer closeFD(dir)
		if layered && isOpaque(dir) {
			layered = false
		}
		if was == nil && s.split != nil && !s.split[path] {
			if whole, err := s.whole(h, dir, path); whole || err != nil {
				return err
			}
		}
		there, empty := map[string]bool{}, true
		err = eachName(dir, func(names []string) error {
			for _, name := range names {
				if h.ctx.Err() != nil {
					return context.Cause(h.ctx)
				}
				empty = false
				if s.w.isPrivate(path, name) {
					continue
				}
				var child *node
				if was.isFolder() {
					if child = was.children[name]; child != nil {
						there[name] = true
					}
				}
				if err := s.name(h, dir, path, name, child, layered); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && !isGone(err) {
			return pathError("list", path, err)
		}
		if was == nil && empty {
			seen, err := statFD(dir)
			if err != nil {
				return pathError("stat", path, err)
			}
			return s.report(newChange(path, Created, nil, &State{Mode: seen.mode}))
		}
		if was.isFolder() && len(there) < len(was.children) && (!layered || len(s.w.recorded) > 0) {
			for name, child := range was.children {
				// What came after the workspace was made is not in the layers.
				if at := below(path, name); !there[name] && (!layered || s.w.recorded[at]) {
					if err := s.missing(at, child); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
}

// whole reports a large new directory as one change.
func (s *search) whole(h *worker, dir int, path string) (bool, error) {
	var found heap
	err := found.measure(h, dir, len(path), 0)
	if err != nil || !found.isLarge() {
		return false, pathError("count", path, err)
	}
	seen, err := statFD(dir)
	if err != nil {
		return false, pathError("stat", path, err)
	}
	c := newChange(path, Created, nil, &State{Mode: seen.mode})
	c.Whole, c.Files = true, found.files
	return true, s.report(c)
}

// isLeftOut reports whether a name of the shared tree is not copied.
func (w *Workspace) isLeftOut(dir, name string) bool {
	return isLeftOut(w.repositories, w.without, dir, name)
}

func isLeftOut(repositories map[string]bool, without area, dir, name string) bool {
	return isPrivate(repositories, dir, name) || strings.HasPrefix(name, durable.TempPrefix) || without[below(dir, name)]
}

// isPrivate reports whether a name belongs to the workspace and not to the tree.
func (w *Workspace) isPrivate(dir, name string) bool { return isPrivate(w.repositories, dir, name) }

func isPrivate(repositories map[string]bool, dir, name string) bool {
	return name == gitName && repositories[dir] || dir == "." && isReserved(name)
}

func (s *search) name(h *worker, dir int, path, name string, was *node, layered bool) error {
	at := below(path, name)
	kind, now, err := h.compare(dir, name, was)
	switch {
	case isGone(err), errors.Is(err, errWhiteout): // the name was removed since it was listed
		return s.missing(at, was)
	case err != nil:
		return pathError("compare", at, err)
	}
	isFolder := now.Mode.IsDir()
	if kind != unchanged && (was != nil || !isFolder) {
		if err := s.report(newChange(at, kind, was, now)); err != nil {
			return err
		}
	}
	if was.isFolder() && !isFolder {
		for name, child := range was.children {
			if err := s.missing(below(at, name), child); err != nil {
				return err
			}
		}
	}
	if isFolder {
		if was != nil && !was.isFolder() {
			was = &node{} // the change of the directory is already reported
		}
		s.pool.add(s.folder(at, was, layered && was.isFolder()))
	}
	return nil
}

// missing reports a copied path that does not exist.
func (s *search) missing(path string, was *node) error {
	if was == nil {
		return nil
	}
	if len(was.children) == 0 {
		return s.report(newChange(path, Deleted, was, nil))
	}
	for name, child := range was.children {
		if err := s.missing(below(path, name), child); err != nil {
			return err
		}
	}
	return nil
}

// Survey does the same as Changes for a workspace with very many changes. A new directory with more
// than a hundred names, or with a path that is too long, is one change with a number of files. It
// lists the directory if a wanted path is below it.
func (w *Workspace) Survey(ctx context.Context, wanted []string) ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w.changes(ctx, foldersAbove(wanted))
}

func foldersAbove(paths []string) map[string]bool {
	above := map[string]bool{}
	for _, p := range paths {
		for p != "." && !above[path.Dir(p)] {
			p = path.Dir(p)
			above[p] = true
		}
	}
	return above
}

// maxListed is how many names a new directory may have for Survey to list them.
const maxListed = 100

// maxDepth bounds the depth of measure, which needs a descriptor for each level.
const maxDepth = 200

// A heap is the size of a directory.
type heap struct {
	names   int
	files   int  // names that are not directories
	unnamed bool // a path in the directory is too long
}

func (p heap) isLarge() bool { return p.names > maxListed || p.unnamed }

// measure counts the names below an open directory whose path has length bytes.
func (p *heap) measure(h *worker, dir, length, depth int) error {
	return eachName(dir, func(names []string) error {
		for _, name := range names {
			if h.ctx.Err() != nil {
				return context.Cause(h.ctx)
			}
			p.names++
			at := length + 1 + len(name)
			p.unnamed = p.unnamed || at > maxPath
			err := inside(dir, name, func(sub int) error {
				if depth == maxDepth {
					p.unnamed = true
					return nil
				}
				return p.measure(h, sub, at, depth+1)
			})
			switch {
			case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
				p.files++
			case err != nil && !isGone(err):
				return err
			}
		}
		return nil
	})
}

// inside calls the function do with an open subdirectory of the workspace. It adds missing rights
// of the owner.
func inside(dir int, name string, do func(sub int) error) error {
	sub, err := openFolder(dir, name, false)
	if errors.Is(err, unix.EACCES) {
		if err = chmodAt(dir, name, 0o700); err == nil {
			sub, err = openFolder(dir, name, false)
		}
	}
	if err != nil {
		return err
	}
	defer closeFD(sub)
	if err := openFully(sub); err != nil {
		return err
	}
	return do(sub)
}
