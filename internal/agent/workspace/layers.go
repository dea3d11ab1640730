package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/overlay"
)

// These are directories in the home of a workspace on layers.
const (
	upperName = "upper" // holds everything that differs from the layers
	workName  = "work"  // belongs to the kernel while the layers are mounted
)

// layers are what is below the tree of a workspace. Nothing changes them.
type layers struct {
	dirs []string // the uppermost first; each has a tree

	view      *os.File // the layers with the changes on them, mounted; nil if they are not mounted
	upperTop  int      // the upper directory and the tree in it, while view is mounted
	upperTree int

	leave   func() // tells the base that the workspace is gone; nil: the base is of another process
	unmount func() // unmounts what a test has mounted; nil: nothing
}

// Overlay returns what to mount for a command, and the directory in it that is the tree. It returns
// false if the tree is a copy. The mount must end before the next method is called.
func (w *Workspace) Overlay() (stack overlay.Stack, tree string, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil || w.layered == nil {
		return overlay.Stack{}, "", false, err
	}
	return w.stack(), treeName, true, nil
}

func (w *Workspace) stack() overlay.Stack {
	return overlay.Stack{Lower: w.layered.dirs, Upper: w.topDir(), Work: filepath.Join(w.dir, workName)}
}

// makeUpper makes the upper directory of a new workspace.
func (w *Workspace) makeUpper() error {
	tree := filepath.Join(w.dir, upperName, treeName)
	if err := errors.Join(os.MkdirAll(tree, 0o700), os.Mkdir(filepath.Join(w.dir, workName), 0o700)); err != nil {
		return err
	}
	if err := os.Chmod(tree, w.base.Mode.Perm()|0o700); err != nil { // the kernel shows this mode
		return err
	}
	return w.openUpper()
}

// openUpper opens the upper directory. All that differs from the layers is read there, without a mount.
func (w *Workspace) openUpper() (err error) {
	if w.top, err = openFolder(w.home, upperName, false); err != nil {
		w.top = -1
		return pathError("open", w.topDir(), err)
	}
	w.tree, err = openFolder(w.top, treeName, false)
	return pathError("open", filepath.Join(w.topDir(), treeName), err)
}

// beginEdit is begin for methods that change the tree. On layers they work in a mount, in which
// the kernel hides, copies and uncovers files of the layers.
func (w *Workspace) beginEdit(ctx context.Context) error {
	if err := w.begin(); err != nil {
		return err
	}
	return w.enterView(ctx)
}

// enterView mounts the layers, if there are any and they are not mounted.
func (w *Workspace) enterView(ctx context.Context) error {
	if w.layered == nil || w.layered.view != nil {
		return nil
	}
	view, err := overlay.Open(ctx, w.stack())
	if err != nil {
		return fmt.Errorf("mount workspace %s: %w", w.dir, err)
	}
	tree, err := openFolder(int(view.Fd()), treeName, false)
	if err != nil {
		return errors.Join(pathError("open", w.Dir(), err), view.Close())
	}
	l := w.layered
	l.view, l.upperTop, l.upperTree = view, w.top, w.tree
	w.top, w.tree = int(view.Fd()), tree
	return nil
}

// leaveView unmounts the layers.
func (w *Workspace) leaveView() {
	l := w.layered
	if l == nil {
		return
	}
	if l.unmount != nil {
		l.unmount()
	}
	if l.view == nil {
		return
	}
	closeFD(w.tree)
	l.view.Close() // nothing was written to the descriptor itself
	l.view, w.top, w.tree = nil, l.upperTop, l.upperTree
}

// record records the copied state of a path, or that nothing was copied there.
func (w *Workspace) record(path string, what *node) {
	w.base = w.base.with(w.owner, path, what)
	if w.layered != nil {
		w.recorded[path] = true
	}
}

// recordMode records the mode of a copied directory.
func (w *Workspace) recordMode(path string, mode os.FileMode) {
	n := w.base.find(path).ownedBy(w.owner)
	n.Mode = mode
	w.record(path, n)
}

// openThrough opens a file for reading, in the upper directory or in the first layer that has it.
func (w *Workspace) openThrough(path string) (*os.File, error) {
	for _, top := range append([]string{w.topDir()}, w.layered.dirs...) {
		fd, below, err := openInLayer(filepath.Join(top, treeName), path)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), filepath.Join(w.Dir(), path)), nil
		case !below:
			return nil, pathError("open", path, err)
		}
	}
	return nil, pathError("open", path, unix.ENOENT)
}

// openInLayer opens a file of one layer. If that fails, below reports whether the layers below it
// count for this path.
func openInLayer(tree, path string) (fd int, below bool, err error) {
	dir, err := openAt(unix.AT_FDCWD, tree, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, false, err
	}
	defer func() { closeFD(dir) }()
	for below = true; ; {
		name, rest, more := strings.Cut(path, "/")
		seen, err := statAt(dir, name)
		switch {
		case errors.Is(err, unix.ENOENT):
			return -1, below, err
		case err == nil && seen.isWhiteout():
			return -1, false, unix.ENOENT
		case err != nil:
			return -1, false, err
		case !more:
			fd, err = openRegular(dir, name)
			return fd, false, err
		}
		sub, err := openFolder(dir, name, false)
		if err != nil {
			return -1, false, err
		}
		closeFD(dir)
		dir, path, below = sub, rest, below && !isOpaque(sub)
	}
}

// hidesLayers reports whether a directory of the workspace was removed and made again, so that it
// shows nothing of the layers.
func (w *Workspace) hidesLayers(path string) bool {
	for ; path != "."; path, _ = split(path) {
		dir, err := openFolder(w.tree, path, false)
		if err != nil {
			continue
		}
		opaque := isOpaque(dir)
		closeFD(dir)
		if opaque {
			return true
		}
	}
	return false
}

// Find returns where a path below Dir is outside of the sandbox. It returns every other path as it
// is.
func (w *Workspace) Find(path string) string {
	rest, inside := strings.CutPrefix(path, w.Dir()+"/")
	if !inside || w.layered == nil {
		return path
	}
	return cmp.Or((&layers{dirs: append([]string{w.topDir()}, w.layered.dirs...)}).find(rest), path)
}

// find returns a path in the uppermost layer that has it, or "".
func (l *layers) find(path string) string {
	for _, dir := range l.dirs {
		full := filepath.Join(dir, treeName, path)
		if _, err := os.Lstat(full); err == nil {
			return full
		}
	}
	return ""
}
