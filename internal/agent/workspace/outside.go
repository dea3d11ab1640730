package workspace

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper/internal/git/gitcmd"
)

// Outside lists the real paths outside the workspace that it must read: the git objects of
// the shared repositories, and the linked folders. It reads the shared tree and not the
// workspace, in which an agent could add other paths.
func (w *Workspace) Outside(ctx context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outside != nil {
		return w.outside, nil
	}
	found := map[string]bool{}
	for path := range w.repositories {
		r, err := openRepository(ctx, filepath.Join(w.root, path))
		var refused *gitcmd.Error
		if errors.As(err, &refused) {
			continue // the workspace has no copy of this repository
		}
		if err != nil {
			return nil, err
		}
		addObjects(found, filepath.Join(r.common, "objects"))
	}
	w.base.each(".", func(at string, n *node) {
		if w.isLinked(at, n) {
			addFolder(found, w.root, filepath.Join(w.root, at))
		}
	})
	w.outside = slices.AppendSeq([]string{}, maps.Keys(found))
	slices.Sort(w.outside)
	return w.outside, nil
}

// addObjects adds a directory of git objects and its alternates.
func addObjects(found map[string]bool, dir string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || found[real] {
		return
	}
	found[real] = true
	text, err := os.ReadFile(filepath.Join(real, "info", "alternates"))
	if err != nil {
		return // the repository has no alternates
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line[0] != '"' {
			addObjects(found, abs(real, line))
		}
	}
}

// addFolder adds a linked folder of dependencies, and the packages of the shared tree that
// it links to.
func addFolder(found map[string]bool, root, dir string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return // the folder was removed meanwhile
	}
	found[real] = true
	entries, _ := os.ReadDir(real)
	for _, e := range entries {
		path := filepath.Join(real, e.Name())
		if e.IsDir() && strings.HasPrefix(e.Name(), "@") { // the name is a scope of packages
			addFolder(found, root, path)
		}
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		target, err := filepath.EvalSymlinks(path)
		if rest, inside := strings.CutPrefix(target, root+"/"); err == nil && inside && !isReserved(strings.SplitN(rest, "/", 2)[0]) {
			found[target] = true
		}
	}
}
