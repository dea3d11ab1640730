package toolcache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/machine/filelock"
)

// A Store keeps the layers of one codebase.
type Store struct {
	dir   string
	limit int64
}

// DefaultLimit is how many bytes a store keeps.
const DefaultLimit = 2 << 30

const (
	maxLayers = 8
	filling   = "filling-"
)

// New returns the store in a directory, which Begin makes.
func New(dir string, limit int64) *Store { return &Store{dir, limit} }

// Layers are the layers that one command uses. They stay until Close.
type Layers struct {
	dirs []string // newest first
	lock *os.File // nil: the store has no layers
}

// Open returns the present layers. A nil store has none.
func (s *Store) Open() (*Layers, error) {
	if s == nil {
		return &Layers{}, nil
	}
	lock, err := os.Open(filepath.Join(s.dir, "lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return &Layers{}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := filelock.Share(lock); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	l := &Layers{lock: lock}
	if l.dirs, err = s.layers(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Below lists the directories with content for the cache at a path, newest first.
func (l *Layers) Below(path string) (list []string) {
	for _, dir := range l.dirs {
		upper := filepath.Join(dir, url.PathEscape(path), "upper")
		if _, err := os.Lstat(upper); err == nil {
			list = append(list, upper)
		}
	}
	return list
}

// Close allows the layers to be removed.
func (l *Layers) Close() error {
	if l.lock == nil {
		return nil
	}
	lock := l.lock
	l.lock = nil
	return errors.Join(filelock.Unlock(lock), lock.Close())
}

// A Layer gets what a trusted command adds.
type Layer struct {
	layers *Layers
	store  *Store
	dir    string
}

// Layers returns the layers below, or nil for a nil layer.
func (l *Layer) Layers() *Layers {
	if l == nil {
		return nil
	}
	return l.layers
}

// Begin makes an empty layer above the present ones. If the store is full, the command starts
// with empty caches, and Keep replaces all layers.
func (s *Store) Begin() (*Layer, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock.Close(); err != nil {
		return nil, err
	}
	l, err := s.Open()
	if err != nil {
		return nil, err
	}
	size, err := sizeOf(l.dirs...)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if len(l.dirs) >= maxLayers || size > s.limit/2 {
		l.dirs = nil
	}
	dir, err := os.MkdirTemp(s.dir, filling)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Layer{l, s, dir}, nil
}

// Changes returns the directory for the changes of the cache at a path.
func (l *Layer) Changes(path string) (string, error) {
	dir := filepath.Join(l.dir, url.PathEscape(path))
	return dir, os.MkdirAll(dir, 0o700)
}

// Discard removes the layer. After Keep it does nothing.
func (l *Layer) Discard(ctx context.Context) error {
	if l.dir == "" {
		return nil
	}
	dir := l.dir
	l.dir = ""
	return errors.Join(workspace.Remove(ctx, dir), l.layers.Close())
}

// Keep adds the layer to the store and returns the size of its content. It returns ErrLarge, and
// keeps nothing, if the layer is larger than the store's limit.
func (l *Layer) Keep(ctx context.Context) (size int64, err error) {
	defer func() { err = errors.Join(err, l.Discard(ctx)) }()
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		for _, name := range []string{"work", "empty"} {
			if err := workspace.Remove(ctx, filepath.Join(l.dir, e.Name(), name)); err != nil {
				return 0, err
			}
		}
	}
	if size, err = sizeOf(l.dir); err != nil || size == 0 {
		return 0, err
	}
	before, err := sizeOf(l.layers.dirs...)
	if err != nil {
		return 0, err
	}
	if size > l.store.limit {
		return size, ErrLarge
	}
	all, err := l.store.layers()
	if err != nil {
		return 0, err
	}
	on := len(l.layers.dirs) > 0
	if on && before+size > l.store.limit { // the store starts over, also without this layer, which needs the others
		return 0, errors.Join(l.Discard(ctx), l.store.remove(ctx, all))
	}
	replaced := all
	if on {
		replaced = nil
	}
	if err := l.store.add(l.dir, all); err != nil {
		return 0, err
	}
	l.dir = ""
	return size, errors.Join(l.layers.Close(), l.store.remove(ctx, replaced))
}

// ErrLarge reports a layer that is larger than what a store may keep.
var ErrLarge = errors.New("the caches of the tools are too large to keep")

// add gives a layer its number.
func (s *Store) add(dir string, present []string) error {
	number := 1
	if len(present) > 0 {
		number, _ = strconv.Atoi(filepath.Base(present[0])) // layers accepts only numbers
		number++
	}
	for { // another command may add a layer meanwhile
		err := os.Rename(dir, filepath.Join(s.dir, fmt.Sprintf("%06d", number)))
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		number++
	}
}

// remove removes layers and what crashed commands left, unless a command uses the store. A later
// call of Keep removes them in that case.
func (s *Store) remove(ctx context.Context, layers []string) (err error) {
	lock, err := os.Open(filepath.Join(s.dir, "lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	alone, err := filelock.Try(lock)
	if err != nil || !alone {
		return err
	}
	defer func() { err = errors.Join(err, filelock.Unlock(lock)) }()
	left, err := filepath.Glob(filepath.Join(s.dir, filling+"*"))
	if err != nil {
		left = nil // filepath.Glob fails if the directory has brackets in its name
	}
	for _, dir := range append(left, layers...) {
		if err := workspace.Remove(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

// layers lists the directories of the layers, newest first.
func (s *Store) layers() (list []string, err error) {
	entries, err := os.ReadDir(s.dir)
	for _, e := range slices.Backward(entries) {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			list = append(list, filepath.Join(s.dir, e.Name()))
		}
	}
	return list, err
}

// Size returns the number of bytes in the store.
func (s *Store) Size() (int64, error) {
	list, err := s.layers()
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return sizeOf(list...)
}

// sizeOf returns the number of bytes in the files of some directories.
func sizeOf(dirs ...string) (size int64, err error) {
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				size += info.Size()
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return size, nil
}
