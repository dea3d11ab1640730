//go:build unix

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
	"time"

	"golang.org/x/sys/unix"
)

// ownName is what directories of workspaces are called: also of one that somebody died
// of removing, which has nothing else in it any more by which it could be known.
var ownName = regexp.MustCompile(`^[0-9a-f]{12}$`)

// Left is a workspace that nobody uses: its user died, or kept it.
type Left struct {
	Home string // to be given to Adopt
	Root string // of which tree it is a copy
	Made time.Time

	// Fault says why it cannot be compared with what was copied. A workspace that
	// was never finished has no manifest: no agent has been in it.
	Fault error
}

// Abandoned lists the workspaces in a directory that nobody uses, oldest first.
// There may still be processes of a dead user's agent at work in them: end those
// before adopting one.
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

// examine looks at one directory; not ok: it is in use, or no workspace.
func examine(dir string, e fs.DirEntry) (left Left, ok bool, err error) {
	if !e.IsDir() {
		return left, false, nil
	}
	fd, err := openAt(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if isGone(err) || isClosed(err) {
		return left, false, nil // removed meanwhile, or not ours
	}
	if err != nil {
		return left, false, pathError("open", dir, err)
	}
	defer closeFD(fd)
	defer unlock(fd)
	seen, err := lookFD(fd)
	if err != nil {
		return left, false, pathError("stat", dir, err)
	}
	left = Left{Home: dir, Made: time.Unix(0, seen.modified)}
	if free, err := isFree(fd); err != nil || !free {
		return left, false, err
	}
	_, noTree := lookAt(fd, treeName)
	f, _, h, err := openManifest(fd, dir)
	switch {
	case noTree != nil && err != nil && !ownName.MatchString(e.Name()):
		return left, false, nil // somebody else's directory
	case err != nil:
		left.Fault = err
		return left, true, nil
	}
	left.Root, left.Made = h.Root, h.Made
	return left, true, f.Close()
}

// Adopt takes over a workspace that nobody uses, with what its maker knew of it.
// The shared tree is the one that it was made of; landed is as in Options. Whoever
// adopts one without a manifest can close it, and nothing else.
func Adopt(home string, landed func(ctx context.Context, after uint64) ([]string, uint64, error)) (*Workspace, error) {
	w := &Workspace{dir: home, top: -1, tree: -1, landed: landed, repositories: map[string]bool{}}
	var err error
	if w.dir, err = filepath.Abs(home); err != nil {
		return nil, err
	}
	if w.top, err = openLocked(w.dir); err != nil {
		return nil, err
	}
	w.fault = w.load()
	if w.tree, err = openFolder(w.top, treeName, false); err != nil {
		w.tree, w.fault = -1, errors.Join(w.fault, pathError("open", w.Dir(), err))
	}
	return w, nil
}
