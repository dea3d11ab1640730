package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// A Kind is the way in which a path differs from the copied one.
type Kind string

// The kinds of change. A file whose content and permissions both differ is Modified. A
// directory is Created or Deleted only if it is, or was, empty. Otherwise its content is
// reported.
const (
	Created     Kind = "created"
	Modified    Kind = "modified" // the content, or the text of a link, is different
	Deleted     Kind = "deleted"
	ModeChanged Kind = "mode changed"
	TypeChanged Kind = "type changed" // for example, a file became a link

	unchanged Kind = ""
)

// A Change is one path at which the workspace differs from the copied state.
type Change struct {
	Path string // relative to the root; bytes in any encoding
	Kind Kind
	Was  *State // nil if the path did not exist
	Now  *State // nil if the path does not exist

	// Whole is true for a directory that Survey did not list. Files is the number of files in it.
	Whole bool
	Files int

	// Base is the version Was in the form that gate.Change needs. It is zero for links and
	// directories, which cannot land.
	Base lockkeeper.Version
}

// CanLand reports whether the gate can land the change: whether it creates, replaces or
// deletes a file.
func (c Change) CanLand() bool {
	return (c.Was == nil || c.Was.Mode.IsRegular()) && (c.Now == nil || c.Now.Mode.IsRegular())
}

// A State describes a path.
type State struct {
	Mode fs.FileMode // mode with the type bits
	Size int64
	Link string // the text of a link
}

func (s *State) String() string {
	switch {
	case s == nil:
		return "nothing"
	case s.Mode.Type() == fs.ModeSymlink:
		return fmt.Sprintf("link to %q", s.Link)
	case s.Mode.IsRegular():
		return fmt.Sprintf("file %04o of %d bytes", s.Mode.Perm(), s.Size)
	}
	return s.Mode.String()
}

func newChange(path string, kind Kind, was *node, now *State) Change {
	c := Change{Path: path, Kind: kind, Now: now}
	if was != nil {
		c.Was = was.state()
		if was.Mode.IsRegular() {
			c.Base = was.version()
		}
	}
	return c
}

func stateAt(dir int, name string, seen fileStat) (*State, error) {
	s := &State{Mode: seen.mode, Size: seen.size}
	if seen.mode.Type() != fs.ModeSymlink {
		return s, nil
	}
	var err error
	s.Link, err = readLink(dir, name)
	return s, err
}

// judge returns how a name differs from the copied one. If it does not differ, judge records the
// new stat and restores the copied time of the file. Build tools rely on that time, and an agent
// can set it.
func (h *worker) judge(dir int, name string, was *node, now fileStat) (Kind, error) {
	start := time.Now()
	switch {
	case was.Mode.Type() != now.mode.Type():
		return TypeChanged, nil
	case now.mode.IsDir():
		if was.Mode.Perm() != now.mode.Perm() {
			return ModeChanged, nil
		}
		return unchanged, nil
	case was.looksLike(now):
		return unchanged, nil
	case now.mode.Type() == fs.ModeSymlink:
		if text, err := readLink(dir, name); err != nil || text != was.Link {
			return Modified, err
		}
	case was.Size != now.size:
		return Modified, nil
	default:
		sum, err := h.sumAt(dir, name, now)
		switch {
		case errors.Is(err, errChanged), isClosed(err):
			return Modified, nil // the content cannot be compared
		case err != nil:
			return unchanged, err
		case sum != was.Sum:
			return Modified, nil
		case was.Mode != now.mode:
			return ModeChanged, nil
		case was.Modified != now.modified && now.links > 1:
			return Modified, nil // the file has another name, whose time would change, too
		case was.Modified != now.modified:
			if err = putTime(dir, name, was.Modified); err == nil {
				now, err = statAt(dir, name)
			}
			if err != nil {
				return unchanged, err
			}
		}
	}
	if !h.shared {
		was.note(now)
		was.Young = now.isYoung(start)
	}
	return unchanged, nil
}

// openOwn opens a directory of the workspace. It adds missing rights of the owner, without
// which its content could be neither read nor removed.
func (w *Workspace) openOwn(path string) (int, error) {
	fd, err := openFolder(w.tree, path, false)
	for at := ""; errors.Is(err, unix.EACCES) && at != path; {
		next, _, _ := strings.Cut(strings.TrimPrefix(path[len(at):], "/"), "/")
		if at = strings.TrimPrefix(at+"/"+next, "/"); w.openUp(at) == nil {
			fd, err = openFolder(w.tree, path, false)
		}
	}
	if errors.Is(err, unix.EXDEV) {
		return -1, lockkeeper.WithNext(fmt.Errorf("%s in workspace %s is a mount point", path, w.dir), "unmount it")
	}
	return fd, err
}

func (w *Workspace) openUp(path string) error {
	dir, name := split(path)
	return opened(w.tree, dir, func(fd int) error {
		seen, err := statAt(fd, name)
		if err == nil && seen.mode.IsDir() && seen.mode&0o700 != 0o700 {
			err = chmodAt(fd, name, seen.mode|0o700)
		}
		return err
	})
}

// compare returns the state of a name and how it differs from the copied one, which is nil if
// nothing was copied.
func (h *worker) compare(dir int, name string, was *node) (kind Kind, now *State, err error) {
	seen, err := statAt(dir, name)
	if err == nil && h.shared && seen.isWhiteout() {
		err = errWhiteout
	}
	if err != nil {
		return unchanged, nil, err
	}
	kind = Created
	if was != nil {
		if kind, err = h.judge(dir, name, was, seen); err != nil {
			return unchanged, nil, err
		}
	}
	now, err = stateAt(dir, name, seen)
	return kind, now, err
}

// inspect returns how one path differs from the copied one, if it does.
func (w *Workspace) inspect(h *worker, path string, was *node) (kind Kind, now *State, err error) {
	h.shared = w.layered != nil
	err = w.at(path, func(dir int, name string) (err error) {
		kind, now, err = h.compare(dir, name, was)
		return err
	})
	switch {
	case err == nil:
		return kind, now, nil
	case isGone(err) && was == nil:
		return unchanged, nil, nil
	case isGone(err):
		return Deleted, nil, nil
	}
	return unchanged, nil, pathError("inspect", path, err)
}
