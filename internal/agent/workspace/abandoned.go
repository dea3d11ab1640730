package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// ownName matches the name of a workspace's directory, also if it was only partly removed.
var ownName = regexp.MustCompile(`^[0-9a-f]{12}$`)

// draftPrefix begins the name of a directory that is to become a workspace and is not locked yet. That directory is empty.
const draftPrefix = ".new-"

// A Left is a workspace that no process uses: its process died, or kept it.
type Left struct {
	Home string // directory of the workspace, for Adopt
	Root string // the shared tree
	Made time.Time

	// Fault says why the workspace can only be closed. An incomplete workspace has no
	// manifest, and no agent has used it.
	Fault error
}

// Abandoned lists the workspaces in a directory that no process uses, oldest first. Processes
// of an agent may still run in them: end those before adopting one. It removes the drafts of
// makers that died.
func Abandoned(ctx context.Context, dir string) ([]Left, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	var list []Left
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if strings.HasPrefix(e.Name(), draftPrefix) {
			removeDraft(filepath.Join(dir, e.Name()))
			continue
		}
		left, ok, err := examine(filepath.Join(dir, e.Name()), e)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, left)
		}
	}
	slices.SortFunc(list, func(a, b Left) int { return a.Made.Compare(b.Made) })
	return list, nil
}

// makeLocked makes the directory of a workspace and locks it before it has its name, so that no
// process takes it for abandoned. A process that looks for abandoned ones can remove a draft
// before it is locked; then makeLocked makes another one.
func makeLocked(dir string) (fd int, err error) {
	const tries = 100
	for i := range tries {
		draft := filepath.Join(filepath.Dir(dir), fmt.Sprintf("%s%s.%d", draftPrefix, filepath.Base(dir), i))
		if err := os.Mkdir(draft, 0o700); err != nil {
			return -1, err
		}
		if fd, err = openLocked(draft); err == nil {
			err = os.Rename(draft, dir)
		}
		var taken *lockkeeper.RefusedError
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, fs.ErrNotExist), errors.As(err, &taken):
			if fd >= 0 {
				closeFD(fd)
			}
		default:
			return fd, errors.Join(err, os.RemoveAll(draft))
		}
	}
	return -1, err
}

// removeDraft removes the draft of a maker that died, which nobody has locked.
func removeDraft(path string) {
	if fd, err := openLocked(path); err == nil {
		unix.Rmdir(path) // fails if the maker has renamed the draft
		unlock(fd)
		closeFD(fd)
	}
}

// examine returns the workspace in a directory. It returns false if the directory is in use or is
// not a workspace.
func examine(dir string, e fs.DirEntry) (left Left, ok bool, err error) {
	if !e.IsDir() {
		return left, false, nil
	}
	fd, err := openAt(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if isGone(err) || isClosed(err) {
		return left, false, nil // the directory was removed meanwhile, or this user may not open it
	}
	if err != nil {
		return left, false, pathError("open", dir, err)
	}
	defer closeFD(fd)
	defer unlock(fd)
	seen, err := statFD(fd)
	if err != nil {
		return left, false, pathError("stat", dir, err)
	}
	left = Left{Home: dir, Made: time.Unix(0, seen.modified)}
	if free, err := isFree(fd); err != nil || !free {
		return left, false, err
	}
	_, noTree := statAt(fd, treeName)
	f, _, h, err := openManifest(fd, dir)
	switch {
	case noTree != nil && err != nil && !ownName.MatchString(e.Name()):
		return left, false, nil // the directory is not a workspace
	case err != nil:
		left.Fault = err
		return left, true, nil
	}
	left.Root, left.Made = h.Root, h.Made
	return left, true, f.Close()
}

// Adopt takes over an abandoned workspace. landed is as in Options. A workspace without a
// manifest can only be closed.
func Adopt(home string, landed func(ctx context.Context, after uint64) ([]string, uint64, error)) (*Workspace, error) {
	w := &Workspace{dir: home, home: -1, top: -1, tree: -1, landed: landed, repositories: map[string]bool{}, maxCreated: maxCreated}
	var err error
	if w.dir, err = filepath.Abs(home); err != nil {
		return nil, err
	}
	if w.home, err = openLocked(w.dir); err != nil {
		return nil, err
	}
	w.fault = w.load()
	open := w.openTree
	if w.layered != nil {
		open = w.openUpper
	}
	if err := open(); err != nil {
		w.fault = errors.Join(w.fault, err)
	}
	return w, nil
}

// openLocked opens and locks a workspace's directory. The lock is on the directory itself, so
// that it exists as long as the workspace, and ends with the process.
func openLocked(dir string) (int, error) {
	fd, err := openAt(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, pathError("open", dir, err)
	}
	switch err := flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		closeFD(fd)
		return -1, &lockkeeper.RefusedError{Act: "taking over workspace " + dir, Reason: "another process uses it",
			Next: "wait until that process ends, or end it"}
	default:
		closeFD(fd)
		return -1, lockkeeper.WithNext(fmt.Errorf("lock %s: %w", dir, err), "use a directory on a local disk")
	}
}

// isFree reports whether no process uses the workspace of an open directory.
func isFree(fd int) (bool, error) {
	err := flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlock releases the lock at once. Closing would not, if a child that is just being started
// has a copy of the descriptor.
func unlock(fd int) { flock(fd, unix.LOCK_UN) }

func flock(fd, how int) error { return untilDone(func() error { return unix.Flock(fd, how) }) }
