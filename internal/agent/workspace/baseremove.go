package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// removeBases removes the bases in a directory that no process adds layers to and no workspace is on,
// except the one named stays.
func removeBases(ctx context.Context, dir, stays string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), baseName) || e.Name() == stays {
			continue
		}
		path := filepath.Join(dir, e.Name())
		lock, err := openLocked(path)
		if err != nil {
			continue // another process uses the base, or has removed it
		}
		used, err := isUsed(dir, e.Name()) // only now, because a process that has the lock may make workspaces on it
		if err == nil && !used {
			err = Remove(ctx, path)
		}
		unlock(lock)
		closeFD(lock)
		if err != nil {
			return err
		}
	}
	return nil
}

// isUsed reports whether a workspace is on a base. A workspace whose manifest cannot be read may be.
func isUsed(dir, base string) (bool, error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !ownName.MatchString(e.Name()) {
			continue
		}
		// A workspace without a manifest is incomplete, or is being removed.
		m, err := readManifestOf(filepath.Join(dir, e.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && len(m.Layers) > 0 && baseOf(dir, m.Layers[0]) == base {
			return true, nil
		}
	}
	return false, err
}

// baseOf returns the name of the base that a layer belongs to.
func baseOf(dir, layer string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(layer, dir), "/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}
