package project

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/internal/project/config"
)

// A Footprint lists what Init and later commands made for one root. Root and Space are empty if
// nothing was found.
type Footprint struct {
	Root  string   `json:"root"`
	Space string   `json:"space"`
	Store string   `json:"store"`
	Paths []string `json:"paths"` // files and directories, absolute

	world world
}

// FootprintOf lists what belongs to the settings' directory, also if .lockkeeper is gone.
func FootprintOf(s Settings) (*Footprint, error) {
	root, err := disk.RealDir(s.Dir)
	if err != nil {
		return nil, err
	}
	if above, _, err := findRoot(root); err == nil {
		root = above
	}
	state, err := StateDir(s.Env)
	if err != nil {
		return nil, err
	}
	f := &Footprint{Root: root, Paths: []string{}, world: worldOf(state, root)}
	marked, err := readMarker(root)
	if err != nil {
		return nil, err
	}
	seen, err := f.world.recall()
	if err != nil {
		return nil, err
	}
	switch {
	case seen != nil:
		f.Space, f.Store = seen.Space, seen.Store
	case marked != nil:
		f.Space = marked.Space
	default:
		return nil, &lockkeeper.InputError{Field: "directory", Value: root, Reason: "nothing of Lockkeeper is set up here", Next: "name the root with --dir"}
	}
	if !isUUID(f.Space) { // its directories would be those of all codebases
		return nil, &lockkeeper.StoreError{Store: f.world.path, Reason: "the record of this root names no space", Next: "restore " + DirName + ", or remove it by hand"}
	}
	paths := []string{filepath.Join(root, DirName), filepath.Join(root, config.FileName),
		filepath.Join(state, "tokens", f.Space), filepath.Join(state, "access", f.Space), filepath.Join(state, "sessions", f.Space), filepath.Join(state, "workspaces", f.Space[:8]), filepath.Join(state, "caches", f.Space[:8]), filepath.Join(state, "slots", f.Space[:8]), f.world.path, f.world.alivePath()}
	if set, err := Configure(root, s); err == nil && set.Config.Run.Workspaces != "" {
		paths = append(paths, workspacesDir(set.Config.Run.Workspaces, state, f.Space, s.Env))
	}
	old, err := filepath.Glob(filepath.Join(root, DirName+".old-*"))
	if err != nil {
		old = nil // the root has brackets in its name
	}
	for _, path := range append(paths, old...) {
		if _, err := os.Lstat(path); err == nil {
			f.Paths = append(f.Paths, path)
		}
	}
	return f, nil
}

// OtherRoots reports whether this user has other codebases with locks.
func (f *Footprint) OtherRoots() (bool, error) {
	entries, err := os.ReadDir(filepath.Dir(f.world.path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return filepath.Ext(e.Name()) == ".json" && e.Name() != filepath.Base(f.world.path)
	}), err
}

// Remove removes everything, while no other process uses the root. The record of the root goes
// last, so that a second call continues after a crash.
func (f *Footprint) Remove(context.Context) error {
	alive, err := f.world.lockAlone()
	if busy, ok := errors.AsType[*inUseError](err); ok {
		return &lockkeeper.RefusedError{Act: "uninit", Reason: busy.Error(), Next: "stop these processes, then repeat the command"}
	}
	if err != nil {
		return err
	}
	defer alive.Close()
	for _, path := range append([]string{filepath.Join(f.Root, DirName)}, f.Paths...) { // removing hooks may have made it again
		if err := removeAll(path); err != nil {
			return err
		}
	}
	return os.RemoveAll(f.world.alivePath())
}

// removeAll removes a tree in which directories may be read-only, as in a copy of the codebase.
func removeAll(path string) error {
	if err := os.RemoveAll(path); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error { // what it cannot change, RemoveAll reports
		if err == nil && d.IsDir() {
			os.Chmod(at, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
