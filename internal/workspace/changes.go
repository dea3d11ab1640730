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

// maxChanges is more than any work is worth looking at.
const maxChanges = 100_000

// Changes lists what differs from what was copied, by path. The private .git is no
// part of it, and neither is .lockkeeper.
func (w *Workspace) Changes(ctx context.Context) ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w.changes(ctx)
}

func (w *Workspace) changes(ctx context.Context) ([]Change, error) {
	s := &search{w: w}
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
	w    *Workspace
	crew *crew

	mu    sync.Mutex
	found []Change
}

func (s *search) report(c Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, c)
	switch {
	case len(s.found) > maxChanges:
		return s.refuse(fmt.Sprintf("there are more than %d", maxChanges))
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
