//go:build unix

package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"lockkeeper"
	"lockkeeper/durable"
)

// maxCreated bounds the new names that are listed: more than any work is worth looking
// at. Changes of what was copied are no more than that.
const maxCreated = 200_000

// Changes lists what differs from what was copied, by path. The private .git is no
// part of it, and neither is .lockkeeper.
func (w *Workspace) Changes(ctx context.Context) ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w.changes(ctx, nil)
}

// changes lists what differs. With split, large new directories are not listed, except
// those in split.
func (w *Workspace) changes(ctx context.Context, split map[string]bool) ([]Change, error) {
	s := &search{w: w, split: split}
	err := together(ctx, func(c *crew) task {
		s.crew = c
		return s.folder(".", w.base)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.found, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return s.found, nil
}

// search compares the workspace with what was copied.
type search struct {
	w     *Workspace
	crew  *crew
	split map[string]bool // directories that are listed in any case; nil: all are

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
	case s.created > maxCreated:
		return s.refuse(fmt.Sprintf("there are more than %d new names", maxCreated))
	case len(c.Path) > maxPath:
		return s.refuse(fmt.Sprintf("the path %q… is longer than %d bytes", c.Path[:80], maxPath))
	}
	return nil
}

func (s *search) refuse(reason string) error {
	return &lockkeeper.RefusedError{Act: "listing the changes in workspace " + s.w.dir, Reason: reason,
		Next: "look at what was made there; close the workspace to have it removed"}
}

// folder compares a directory with what was copied of it; nil: nothing was.
func (s *search) folder(path string, was *node) task {
	return func(h *hand) error {
		if len(path) > maxPath {
			return s.report(newChange(path, Created, nil, nil))
		}
		dir, err := s.w.openOwn(path)
		switch {
		case isGone(err) && path != ".":
			return s.missing(path, was) // since it was listed
		case err != nil:
			return pathError("open", path, err)
		}
		defer closeFD(dir)
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
				if err := s.name(h, dir, path, name, child); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && !isGone(err) {
			return pathError("list", path, err)
		}
		if was == nil && empty {
			seen, err := lookFD(dir)
			if err != nil {
				return pathError("stat", path, err)
			}
			return s.report(newChange(path, Created, nil, &State{Mode: seen.mode}))
		}
		if was.isFolder() && len(there) < len(was.children) {
			for name, child := range was.children {
				if !there[name] {
					if err := s.missing(below(path, name), child); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
}

// whole reports a new directory as one change, if it is large.
func (s *search) whole(h *hand, dir int, path string) (bool, error) {
	var found heap
	err := found.measure(h, dir, len(path), 0)
	if err != nil || !found.isLarge() {
		return false, pathError("count", path, err)
	}
	seen, err := lookFD(dir)
	if err != nil {
		return false, pathError("stat", path, err)
	}
	c := newChange(path, Created, nil, &State{Mode: seen.mode})
	c.Whole, c.Files = true, found.files
	return true, s.report(c)
}

// isLeftOut reports whether a name of the shared tree has no place in the copy.
func (w *Workspace) isLeftOut(dir, name string) bool {
	return w.isPrivate(dir, name) || strings.HasPrefix(name, durable.TempPrefix) || w.without[below(dir, name)]
}

// isPrivate reports whether a name is the workspace's own and no part of the tree.
func (w *Workspace) isPrivate(dir, name string) bool {
	return name == gitName && w.repositories[dir] || dir == "." && isReserved(name)
}

func (s *search) name(h *hand, dir int, path, name string, was *node) error {
	at := below(path, name)
	seen, err := lookAt(dir, name)
	kind := Created
	var now *State
	if err == nil && was != nil {
		kind, err = h.judge(dir, name, was, seen)
	}
	if err == nil && kind != unchanged {
		now, err = stateAt(dir, name, seen)
	}
	switch {
	case isGone(err): // since it was listed
		return s.missing(at, was)
	case err != nil:
		return pathError("compare", at, err)
	}
	isFolder := seen.mode.IsDir()
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
			was = &node{} // whose change has been told
		}
		s.crew.add(s.folder(at, was))
	}
	return nil
}

// missing reports what was copied and is not there.
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
