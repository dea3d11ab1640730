package sidecar

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper/durable"
)

// legacyDir is where earlier versions kept their output.
const legacyDir = ".harden"

// Store is a sidecar directory. It may be used by several goroutines.
type Store struct {
	dir  string
	turn chan struct{} // full while somebody of this process has, or waits for, the file lock

	synced directories

	// ops are the operations in an open folder.
	ops func(*os.Root) durable.Ops
}

// Open is the sidecar directory at an absolute path. Nothing is made before the first
// write.
func Open(dir string) *Store {
	return &Store{dir: filepath.Clean(dir), turn: make(chan struct{}, 1), synced: directories{},
		ops: func(root *os.Root) durable.Ops { return rooted{root: root} }}
}

// Dir is the path that was given to Open.
func (s *Store) Dir() string { return s.dir }

// Unit is the folder of a controller, or of another flow's unit.
func (s *Store) Unit(name string) *Folder { return (&Folder{store: s}).Sub(name) }

// decisions is the folder of what outlives runs. Its name is not spelled like a unit's.
func (s *Store) decisions() *Folder { return &Folder{store: s, parts: []string{decisionsDir}} }

// Units lists the units that have a folder. odd are entries that look like folders of
// units and are not: spellings of no name, and links. Files are nobody's business.
func (s *Store) Units(ctx context.Context) (names, odd []string, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		link := e.Type()&fs.ModeSymlink != 0
		if e.Name() == decisionsDir || strings.HasPrefix(e.Name(), ".") || !e.IsDir() && !link {
			continue
		}
		if name, ok := UnitName(e.Name()); ok && !link {
			names = append(names, name)
		} else {
			odd = append(odd, e.Name())
		}
	}
	slices.Sort(names)
	return names, odd, nil
}

// Folder is a folder below the sidecar directory. It need not exist.
type Folder struct {
	store *Store
	parts []string // as spelled on disk
	err   error    // why its name cannot be one
}

// Sub is a folder below, each part spelled by FolderName.
func (f *Folder) Sub(parts ...string) *Folder {
	sub := &Folder{store: f.store, parts: slices.Clone(f.parts), err: f.err}
	for _, part := range parts {
		spelled, err := spell(part, "")
		sub.parts = append(sub.parts, spelled)
		sub.err = errors.Join(sub.err, err)
	}
	return sub
}

// Dir is the folder's absolute path.
func (f *Folder) Dir() string { return filepath.Join(f.store.dir, f.rel("")) }

// rel is the path of a file in the folder, relative to the sidecar directory.
func (f *Folder) rel(name string) string {
	return filepath.FromSlash(path.Join(append(slices.Clone(f.parts), name)...))
}

// FindLegacy looks for the output of earlier versions below the root of a project.
func FindLegacy(root string) (dir string, found bool, err error) {
	dir = filepath.Join(root, legacyDir)
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil || !info.IsDir() {
		return "", false, err
	}
	return dir, true, nil
}
