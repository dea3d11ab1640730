package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Restore uses these directories in a workspace's home.
const (
	repositoriesName = "repositories" // the private repositories in their first state
	swapName         = "swap"         // holds the new version of a directory, and after the swap the old one
)

// Restore resets the part of the workspace that Changes does not report. It resets every
// private repository with its configuration, hooks, refs, HEAD and index, and removes any
// other .git or .lockkeeper at the top. This is necessary because git runs programs that a
// repository's configuration names. Call TakeOut first, which restores the directories of
// repositories. No agent may run meanwhile.
func (w *Workspace) Restore(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return err
	}
	if _, err := statAt(w.home, repositoriesName); w.layered == nil && isGone(err) { // an earlier version without Restore made the workspace
		from, err := openOrigin(w.root, w.sums)
		if err != nil {
			return err
		}
		defer from.close()
		if err := w.makeRepositories(ctx, from, w.repositoryPaths()); err != nil {
			return err
		}
	}
	if err := w.replace(ctx, ".", stateDir, ""); err != nil {
		return err
	}
	if !w.repositories["."] {
		if err := w.replace(ctx, ".", gitName, ""); err != nil {
			return err
		}
	}
	for _, path := range w.repositoryPaths() {
		if err := w.placeRepository(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workspace) repositoryPaths() []string { return slices.Sorted(maps.Keys(w.repositories)) }

// template returns the path of the original private repository of a directory.
func (w *Workspace) template(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(w.dir, repositoriesName, hex.EncodeToString(sum[:12]))
}

// placeRepository copies the private repository of a directory into the tree, if there is one. On
// layers it is enough to remove what the workspace has, unless it hides the one of the layers.
func (w *Workspace) placeRepository(ctx context.Context, path string) error {
	from := w.template(path)
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		from = ""
		if w.layered != nil && w.hidesLayers(path) {
			from = w.layered.find(below(path, gitName))
		}
	} else if err != nil {
		return err
	}
	return w.replace(ctx, path, gitName, from)
}

// replace replaces a name with a copy of a directory. If from is empty, it only removes the name.
func (w *Workspace) replace(ctx context.Context, path, name, from string) error {
	at := below(path, name)
	swap, err := w.openSwap(ctx)
	if err != nil {
		return err
	}
	defer closeFD(swap)
	if from != "" {
		if err := newWorker(ctx).copyFolder(from, filepath.Join(w.topDir(), swapName, "new")); err != nil {
			return err
		}
		if w.layered != nil {
			if err := opened(swap, "new", makeOpaque); err != nil {
				return err
			}
		}
	}
	err = w.at(at, func(dir int, name string) error {
		if err := moveAway(dir, name, swap, "old"); err != nil || from == "" {
			return err
		}
		return unix.Renameat(swap, "new", dir, name)
	})
	if err != nil && !isGone(err) { // the agent may have removed the directory, and that change may land
		return pathError("restore", at, err)
	}
	return w.clearSwap(ctx, swap)
}

// openSwap opens an empty directory next to the tree.
func (w *Workspace) openSwap(ctx context.Context) (int, error) {
	err := unix.Mkdirat(w.top, swapName, 0o700)
	isLeft := errors.Is(err, fs.ErrExist) // a crash left the directory
	if err != nil && !isLeft {
		return -1, pathError("mkdir", filepath.Join(w.topDir(), swapName), err)
	}
	swap, err := openFolder(w.top, swapName, false)
	if err != nil {
		return -1, pathError("open", filepath.Join(w.topDir(), swapName), err)
	}
	if !isLeft {
		return swap, nil
	}
	defer closeFD(swap)
	if err := w.clearSwap(ctx, swap); err != nil {
		return -1, err
	}
	return w.openSwap(ctx)
}

func (w *Workspace) clearSwap(ctx context.Context, swap int) error {
	r := &removal{ctx: ctx, dir: filepath.Join(w.topDir(), swapName), top: swap}
	return r.run()
}

// moveAway moves a name into another directory. The name may be missing.
func moveAway(dir int, name string, to int, as string) error {
	err := unix.Renameat(dir, name, to, as)
	if errors.Is(err, unix.EACCES) { // moving a directory needs write permission
		if seen, failed := statAt(dir, name); failed == nil && seen.mode.IsDir() && seen.mode&0o700 != 0o700 {
			if err = chmodAt(dir, name, seen.mode|0o700); err == nil {
				err = unix.Renameat(dir, name, to, as)
			}
		}
	}
	if isGone(err) {
		return nil
	}
	return err
}

// copyFolder copies a directory of the workspace's home, which has only files and directories.
func (h *worker) copyFolder(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Mkdir(filepath.Join(to, rel), 0o755)
		}
		return h.copyOver(path, filepath.Join(to, rel))
	})
}
