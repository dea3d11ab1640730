package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A sharedRepository tells without git whether a repository of the shared tree has changed.
type sharedRepository struct {
	*repository
	stamp string
}

// watchRepository returns the present state of a repository, or none if git cannot read it.
func watchRepository(ctx context.Context, work string) sharedRepository {
	r, err := openRepository(ctx, work)
	if err != nil {
		return sharedRepository{}
	}
	return sharedRepository{r, r.stamp()}
}

// stamp changes with every commit, checkout and add. Git replaces files instead of writing to them,
// so the times of directories show new and changed refs.
func (r *repository) stamp() string {
	var all strings.Builder
	add := func(path string) {
		if seen, err := statAt(unix.AT_FDCWD, path); err == nil {
			fmt.Fprintf(&all, "%s %d %d %d %d\n", path, seen.inode, seen.size, seen.modified, seen.changed)
		}
	}
	for _, name := range append([]string{"HEAD", "index", "config.worktree", "reftable/tables.list"}, stateFiles...) {
		add(filepath.Join(r.gitDir, name))
	}
	for _, name := range []string{"config", "packed-refs", "shallow", "info/exclude", "info/attributes", "reftable/tables.list"} {
		add(filepath.Join(r.common, name))
	}
	// A directory that cannot be listed counts as unchanged.
	filepath.WalkDir(filepath.Join(r.common, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			add(path)
		}
		return nil
	})
	return all.String()
}

// movedRepositories lists the repositories that have changed since the snapshot, or are gone. One that
// git could not read then has changed if git can read it now.
func (s *snapshot) movedRepositories(ctx context.Context, root string) (moved []string) {
	for path, was := range s.shared {
		now := was
		if was.repository == nil {
			now = watchRepository(ctx, filepath.Join(root, path))
		} else {
			now.stamp = was.repository.stamp()
		}
		if now.stamp != was.stamp || len(lostRepositories(root, []string{path})) > 0 {
			moved = append(moved, path)
		}
	}
	return moved
}

// uncover makes the directory of a repository part of the upper directory. It does so through the
// mount, by setting the mode that the directory has.
func (w *Workspace) uncover(ctx context.Context, path string) error {
	if path == "." {
		return nil // the upper directory always has it
	}
	if err := w.enterView(ctx); err != nil {
		return err
	}
	fd, err := w.openOwn(path)
	if isGone(err) {
		return nil // the directory was removed meanwhile
	}
	if err != nil {
		return pathError("open", path, err)
	}
	defer closeFD(fd)
	seen, err := statFD(fd)
	if err == nil {
		err = unix.Fchmod(fd, uint32(seen.mode.Perm()))
	}
	return pathError("chmod", path, err)
}

// lostRepositories lists those of some repositories that the shared tree no longer has.
func lostRepositories(root string, paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, err := statAt(unix.AT_FDCWD, filepath.Join(root, path, gitName))
		return path == "." || !isGone(err)
	})
}

// dropRepositories removes private repositories from the tree. Their directories become ordinary ones.
func (w *Workspace) dropRepositories(ctx context.Context, paths []string) error {
	w.repositories = maps.Clone(w.repositories) // the layers share it
	for _, path := range paths {
		delete(w.repositories, path)
		if err := w.enterView(ctx); err != nil {
			return err
		}
		fd, err := w.openOwn(path)
		if isGone(err) {
			continue
		}
		if err != nil {
			return pathError("open", path, err)
		}
		dir, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd))
		closeFD(fd)
		if err == nil {
			err = errors.Join(dir.RemoveAll(gitName), dir.Close())
		}
		if err != nil {
			return pathError("remove", below(path, gitName), err)
		}
	}
	return nil
}
