//go:build unix

package tree

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// stateDir is where Lockkeeper keeps its own files.
const stateDir = ".lockkeeper"

// marker is the file in stateDir that makes a directory a root.
const marker = "space.json"

// maxTurns bounds how often a walk begins anew: at a link, at a ".." inside a
// link, or because an entry changed while it was looked at. Linux follows at
// most 40 links too.
const maxTurns = 40

// walk resolves one spelling. It opens one directory after the other, none
// through a link; when it meets a link it puts the link's text in place of its
// name and begins again at the root.
type walk struct {
	root     *Root
	spelling string
	mode     lockkeeper.Mode
	segs     []string // the whole way from the root, as far as known
	mustDir  bool     // only a directory can be meant
	names    []string // the real names passed in this turn
}

// errAgain ends a turn: segs has changed, or the disk has.
var errAgain = errors.New("begin again")

func (w *walk) run(rootFD int) (lockkeeper.Target, error) {
	if target, ok := w.straight(rootFD); ok {
		return target, nil
	}
	for range maxTurns {
		target, err := w.turn(rootFD)
		if err != errAgain {
			return target, err
		}
	}
	return lockkeeper.Target{}, w.refuse(fmt.Sprintf("more than %d symlinks, or a loop of them", maxTurns), "repair the links")
}

func (w *walk) turn(rootFD int) (lockkeeper.Target, error) {
	w.names = w.names[:0]
	here := place{root: w.root, fd: rootFD, borrowed: true}
	defer here.close()
	for i, seg := range w.segs {
		rest := w.segs[i+1:]
		if seg == ".." {
			return lockkeeper.Target{}, w.up(&here, rest)
		}
		name, err := here.nameOf(seg)
		if err != nil {
			return lockkeeper.Target{}, w.explain(err)
		}
		if len(w.names) == 0 && (name == lockkeeper.GitTarget || name == stateDir) {
			return w.reserved(name, rest)
		}
		w.names = append(w.names, name)
		switch {
		case here.missing:
		case len(rest) == 0:
			return w.last(&here, name)
		default:
			if err := w.enter(&here, name, rest); err != nil {
				return lockkeeper.Target{}, err
			}
		}
	}
	if len(w.names) == 0 {
		return lockkeeper.Target{Path: lockkeeper.Root, Kind: lockkeeper.Dir}, nil
	}
	return w.fresh(), nil
}

// up handles the ".." of a link. The names passed are real, so the parent is
// the name before.
func (w *walk) up(here *place, rest []string) error {
	switch {
	case here.missing:
		return w.refuse("a symlink goes up from a directory that does not exist", "repair the link")
	case len(w.names) == 0:
		return w.refuse("a symlink leaves the root", "lock a path inside the root")
	}
	w.segs = slices.Concat(w.names[:len(w.names)-1], rest)
	return errAgain
}

func (w *walk) reserved(name string, rest []string) (lockkeeper.Target, error) {
	switch {
	case name == stateDir:
		return lockkeeper.Target{}, w.refuse(stateDir+" belongs to Lockkeeper itself", "lock the files of the codebase")
	case len(rest) > 0:
		return lockkeeper.Target{}, w.refuse("part of "+lockkeeper.GitTarget+", which git rewrites as one", "lock .git as a whole")
	}
	return lockkeeper.Target{Path: lockkeeper.GitTarget, Kind: lockkeeper.File}, nil
}

// enter goes one directory down.
func (w *walk) enter(here *place, name string, rest []string) error {
	fd, err := unix.Openat(here.fd, name, openDir, 0)
	switch {
	case err == nil:
		here.moveTo(fd)
		self, err := statFD(fd)
		if err != nil {
			return w.explain(err)
		}
		if err := w.checkDevice(self); err != nil {
			return err
		}
		return w.checkNested(fd, ".")
	case errors.Is(err, unix.ENOENT):
		here.missing = true
		return nil
	case errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP):
		return w.follow(here, name, rest)
	}
	return w.explain(err)
}

// follow replaces the name of a link with its text.
func (w *walk) follow(here *place, name string, rest []string) error {
	link, err := readlinkAt(here.fd, name)
	switch {
	case errors.Is(err, unix.EINVAL) && len(rest) > 0:
		// Not a link. Unless it has just become a directory, it is in the way.
		if e, err := statAt(here.fd, name); err == nil && e.isDir() {
			return errAgain
		}
		return w.refuse(w.path()+" is not a directory", "name a path that does not go through a file")
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT):
		return errAgain
	case err != nil:
		return w.explain(err)
	}
	to, mustDir := segments(link)
	if len(rest) == 0 {
		w.mustDir = w.mustDir || mustDir
	}
	if filepath.IsAbs(link) {
		below, inside, err := w.root.locate(link)
		if err != nil {
			return w.explain(err)
		}
		if !inside {
			return w.refuse(fmt.Sprintf("symlink %s leaves the root: it points to %q", w.path(), link), "lock a path inside the root")
		}
		w.segs = slices.Concat(below, rest)
		return errAgain
	}
	dir := w.names[:len(w.names)-1]
	for len(dir) > 0 && len(to) > 0 && to[0] == ".." {
		dir, to = dir[:len(dir)-1], to[1:]
	}
	w.segs = slices.Concat(dir, to, rest)
	return errAgain
}

// last judges what the whole path names.
func (w *walk) last(here *place, name string) (lockkeeper.Target, error) {
	e, err := statAt(here.fd, name)
	none := lockkeeper.Target{}
	switch {
	case errors.Is(err, unix.ENOENT):
		return w.fresh(), nil
	case err != nil:
		return none, w.explain(err)
	case e.isLink():
		return none, w.follow(here, name, nil)
	}
	if err := w.checkDevice(e); err != nil {
		return none, err
	}
	switch {
	case e.isDir():
		return lockkeeper.Target{Path: w.path(), Kind: lockkeeper.Dir}, w.checkNested(here.fd, name)
	case !e.isRegular():
		return none, w.refuse("neither a file nor a directory", "lock regular files only")
	case w.mustDir:
		return none, w.refuse("a file spelled with a trailing slash", "drop the slash")
	case e.links > 1 && w.mode != lockkeeper.Read:
		return none, w.refuse(fmt.Sprintf("the file has %d hard links, and its other names may be locked by somebody else", e.links),
			"break the link (copy the file and move the copy over it), or lock it for reading")
	}
	return lockkeeper.Target{Path: w.path(), Kind: lockkeeper.File}, nil
}

// fresh is the target of a path that names nothing yet.
func (w *walk) fresh() lockkeeper.Target {
	kind := lockkeeper.File
	if w.mustDir {
		kind = lockkeeper.Dir
	}
	return lockkeeper.Target{Path: w.path(), Kind: kind}
}

// checkDevice holds a space on one mount of one device: beyond it a rename
// fails, and a bind mount gives a file a second name.
func (w *walk) checkDevice(e entry) error {
	if w.root.self.sameDevice(e) {
		return nil
	}
	return w.refuse(w.path()+" is on another device or mount than the root", "open a space of its own there")
}

// checkNested refuses a directory that is a root of its own: its users do not
// see the locks of this one.
func (w *walk) checkNested(fd int, dir string) error {
	err := unix.Faccessat(fd, dir+"/"+stateDir+"/"+marker, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil:
		return w.refuse(w.path()+" is a root with locks of its own", "work in it, with lockkeeper --dir, or remove its "+stateDir)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil
	}
	return w.explain(err)
}

func (w *walk) path() string { return strings.Join(w.names, "/") }

func (w *walk) refuse(reason, next string) error { return refuse(w.spelling, reason, next) }

func (w *walk) explain(err error) error { return explain(w.spelling, err) }

// explain turns an error of the disk into a refusal where the path is to blame.
func explain(spelling string, err error) error {
	var named *nameError
	switch {
	case errors.As(err, &named):
		return refuse(spelling, named.reason, named.next)
	case errors.Is(err, unix.ENAMETOOLONG):
		return refuse(spelling, "a name in it is too long for this disk", "give a shorter name")
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return refuse(spelling, "not permitted to look at it", "ask for permission to read its directory")
	case errors.Is(err, unix.ELOOP):
		return refuse(spelling, "a loop of symlinks", "repair the links")
	}
	return fmt.Errorf("resolve %q: %w", spelling, err)
}
