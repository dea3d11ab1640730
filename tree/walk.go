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

// stateDir is the directory of Lockkeeper's own files.
const stateDir = ".lockkeeper"

// marker is the file in stateDir that makes a directory a root.
const marker = "space.json"

// maxAttempts bounds how often a walk restarts: at a link, at a ".." in a link, or
// because the disk changed meanwhile. Linux also follows at most 40 links.
const maxAttempts = 40

// A walk resolves one spelling. It opens one directory after the other without
// following links. At a link it replaces the name with the link's target and restarts
// at the root.
type walk struct {
	root     *Root
	spelling string
	mode     lockkeeper.Mode
	segs     []string // the path from the root, as far as known
	mustDir  bool     // the spelling can only mean a directory
	names    []string // the real names passed in this attempt
}

// errRestart ends an attempt: segs or the disk has changed.
var errRestart = errors.New("restart")

func (w *walk) run(rootFD int) (lockkeeper.Target, error) {
	if target, ok := w.resolveDirect(rootFD); ok {
		return target, nil
	}
	for range maxAttempts {
		target, err := w.attempt(rootFD)
		if err != errRestart {
			return target, err
		}
	}
	return lockkeeper.Target{}, w.refuse(fmt.Sprintf("more than %d symlinks, or a loop of them", maxAttempts), "repair the links")
}

func (w *walk) attempt(rootFD int) (lockkeeper.Target, error) {
	w.names = w.names[:0]
	here := position{root: w.root, fd: rootFD, borrowed: true}
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
	return w.newTarget(), nil
}

// up handles ".." in a link. The names passed are real, so the parent is the previous
// name.
func (w *walk) up(here *position, rest []string) error {
	switch {
	case here.missing:
		return w.refuse("a symlink goes up from a directory that does not exist", "repair the link")
	case len(w.names) == 0:
		return w.refuse("a symlink leaves the root", "lock a path inside the root")
	}
	w.segs = slices.Concat(w.names[:len(w.names)-1], rest)
	return errRestart
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

// enter opens the next directory.
func (w *walk) enter(here *position, name string, rest []string) error {
	fd, err := unix.Openat(here.fd, name, openDir, 0)
	switch {
	case err == nil:
		here.close()
		*here = position{root: here.root, fd: fd}
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

// follow replaces the name of a link with its target.
func (w *walk) follow(here *position, name string, rest []string) error {
	link, err := readlinkAt(here.fd, name)
	switch {
	case errors.Is(err, unix.EINVAL) && len(rest) > 0:
		// The name is not a link. It is a file, unless it has just become a directory.
		if e, err := statAt(here.fd, name); err == nil && e.isDir() {
			return errRestart
		}
		return w.refuse(w.path()+" is not a directory", "use a path that does not go through a file")
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT):
		return errRestart
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
		return errRestart
	}
	dir := w.names[:len(w.names)-1]
	for len(dir) > 0 && len(to) > 0 && to[0] == ".." {
		dir, to = dir[:len(dir)-1], to[1:]
	}
	w.segs = slices.Concat(dir, to, rest)
	return errRestart
}

// last returns the target that the whole path names.
func (w *walk) last(here *position, name string) (lockkeeper.Target, error) {
	e, err := statAt(here.fd, name)
	none := lockkeeper.Target{}
	switch {
	case errors.Is(err, unix.ENOENT):
		return w.newTarget(), nil
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
		return none, w.refuse(fmt.Sprintf("the file has %d hard links, and its other names may be locked by another holder", e.links),
			"break the link (copy the file and move the copy over it), or lock it for reading")
	}
	return lockkeeper.Target{Path: w.path(), Kind: lockkeeper.File}, nil
}

// newTarget returns the target of a path that does not exist yet.
func (w *walk) newTarget() lockkeeper.Target {
	kind := lockkeeper.File
	if w.mustDir {
		kind = lockkeeper.Dir
	}
	return lockkeeper.Target{Path: w.path(), Kind: kind}
}

// checkDevice keeps a space on one mount of one device: a rename to another one
// fails, and a bind mount gives a file a second name.
func (w *walk) checkDevice(e fileStat) error {
	if w.root.self.sameDevice(e) {
		return nil
	}
	return w.refuse(w.path()+" is on another device or mount than the root", "create a separate space there")
}

// checkNested refuses a directory that is another root: its users do not see the
// locks of this one.
func (w *walk) checkNested(fd int, dir string) error {
	err := unix.Faccessat(fd, dir+"/"+stateDir+"/"+marker, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil:
		return w.refuse(w.path()+" is a root with its own locks", "work in it, with lockkeeper --dir, or remove its "+stateDir)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil
	}
	return w.explain(err)
}

func (w *walk) path() string { return strings.Join(w.names, "/") }

func (w *walk) refuse(reason, next string) error { return refuse(w.spelling, reason, next) }

func (w *walk) explain(err error) error { return explain(w.spelling, err) }

// explain converts an error caused by the path into a refusal.
func explain(spelling string, err error) error {
	var named *nameError
	switch {
	case errors.As(err, &named):
		return refuse(spelling, named.reason, named.next)
	case errors.Is(err, unix.ENAMETOOLONG):
		return refuse(spelling, "a name in it is too long for this disk", "use a shorter name")
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return refuse(spelling, "permission denied", "make its directory readable for this user")
	case errors.Is(err, unix.ELOOP):
		return refuse(spelling, "a loop of symlinks", "repair the links")
	}
	return fmt.Errorf("resolve %q: %w", spelling, err)
}
