//go:build unix

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

// Kind says how a path differs from what was copied.
type Kind string

// The kinds of change. A file whose content and permissions both differ is
// Modified. A directory is Created or Deleted only if nothing is, or was, in it:
// otherwise what is in it tells.
const (
	Created     Kind = "created"
	Modified    Kind = "modified" // other content; of a link, another text
	Deleted     Kind = "deleted"
	ModeChanged Kind = "mode changed"
	TypeChanged Kind = "type changed" // a file is a link now, or a directory a file

	unchanged Kind = ""
)

// Change is one path at which the workspace is not what was copied.
type Change struct {
	Path string // relative to the root; bytes, in whatever encoding
	Kind Kind
	Was  *State // nil: nothing was there
	Now  *State // nil: nothing is there

	// Whole says that the change is a directory that Survey did not list, with so many
	// files below it.
	Whole bool
	Files int

	// Base is Was as a gate.Change wants it. Links and directories, which cannot
	// land, are nothing to a gate.
	Base lockkeeper.Version
}

// CanLand reports whether a gate can carry the change out: whether it is one
// between files and nothing.
func (c Change) CanLand() bool {
	return (c.Was == nil || c.Was.Mode.IsRegular()) && (c.Now == nil || c.Now.Mode.IsRegular())
}

// State is what a path holds.
type State struct {
	Mode fs.FileMode // with its type
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

// stateAt is what a name holds that was just looked at.
func stateAt(dir int, name string, seen look) (*State, error) {
	s := &State{Mode: seen.mode, Size: seen.size}
	if seen.mode.Type() != fs.ModeSymlink {
		return s, nil
	}
	var err error
	s.Link, err = readLink(dir, name)
	return s, err
}

// judge says how a name differs from what was copied. What is found to be the
// same will be known by its stat from now on. A file that holds the same gets back
// the time that it was copied with: build tools trust it, and an agent can set it.
func (h *hand) judge(dir int, name string, was *node, now look) (Kind, error) {
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
			return Modified, nil // whatever it holds, it is not known to be the same
		case err != nil:
			return unchanged, err
		case sum != was.Sum:
			return Modified, nil
		case was.Mode != now.mode:
			return ModeChanged, nil
		case was.Modified != now.modified && now.links > 1:
			return Modified, nil // its time cannot be put back without changing that of another name
		case was.Modified != now.modified:
			if err = putTime(dir, name, was.Modified); err == nil {
				now, err = lookAt(dir, name)
			}
			if err != nil {
				return unchanged, err
			}
		}
	}
	was.note(now)
	was.Young = now.isYoung(start)
	return unchanged, nil
}

// openOwn opens a directory of the workspace. One that its owner may not enter is
// opened up: whatever is in it could otherwise neither be seen nor removed.
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
		seen, err := lookAt(fd, name)
		if err == nil && seen.mode.IsDir() && seen.mode&0o700 != 0o700 {
			err = chmodAt(fd, name, seen.mode|0o700)
		}
		return err
	})
}

// inspect says how one path differs from what was copied, if anything was.
func (w *Workspace) inspect(h *hand, path string, was *node) (kind Kind, now *State, err error) {
	dirPath, name := split(path)
	dir, err := w.openOwn(dirPath)
	if err == nil {
		defer closeFD(dir)
		var seen look
		if seen, err = lookAt(dir, name); err == nil {
			if now, err = stateAt(dir, name, seen); err == nil && was != nil {
				kind, err = h.judge(dir, name, was, seen)
			} else {
				kind = Created
			}
		}
	}
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
