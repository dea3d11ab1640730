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

// legacyDir is the directory of earlier pipelines.
const legacyDir = ".harden"

// A Store is a sidecar directory. It is safe for concurrent use.
type Store struct {
	dir  string
	turn chan struct{} // full while a goroutine of this process holds or waits for the file lock

	synced directories

	// ops are the operations in an open folder.
	ops func(*os.Root) durable.Ops
}

// Open returns the sidecar directory at an absolute path. The first write creates it.
func Open(dir string) *Store {
	return &Store{dir: filepath.Clean(dir), turn: make(chan struct{}, 1), synced: directories{},
		ops: func(root *os.Root) durable.Ops { return rooted{root: root} }}
}

// Dir returns the path that was given to Open.
func (s *Store) Dir() string { return s.dir }

// Unit returns the folder of a unit.
func (s *Store) Unit(name string) *Folder { return (&Folder{store: s}).Sub(name) }

// decisions returns the folder of past decisions. No unit has its name.
func (s *Store) decisions() *Folder { return &Folder{store: s, parts: []string{decisionsDir}} }

// Units lists the units that have a folder. The list odd has links, and folders whose name is not
// that of a unit. Files are ignored.
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

// A Folder is a folder below the sidecar directory. It need not exist.
type Folder struct {
	store *Store
	parts []string // names on disk
	err   error    // why its name is invalid
}

// Sub returns a folder below this one. FolderName gives the name of each part.
func (f *Folder) Sub(parts ...string) *Folder {
	sub := &Folder{store: f.store, parts: slices.Clone(f.parts), err: f.err}
	for _, part := range parts {
		spelled, err := spell(part, "")
		sub.parts = append(sub.parts, spelled)
		sub.err = errors.Join(sub.err, err)
	}
	return sub
}

// Dir returns the folder's absolute path.
func (f *Folder) Dir() string { return filepath.Join(f.store.dir, f.rel("")) }

// rel returns the path of a file in the folder, relative to the sidecar directory.
func (f *Folder) rel(name string) string {
	return filepath.FromSlash(path.Join(append(slices.Clone(f.parts), name)...))
}

// FindLegacy finds the directory of earlier pipelines below the root of a project.
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
