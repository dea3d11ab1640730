package documents

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"lockkeeper"
	"lockkeeper/durable"
)

const (
	filePerm fs.FileMode = 0o644
	dirPerm  fs.FileMode = 0o755

	// maxSize bounds a file that is read into memory. This package writes no larger file.
	maxSize = 64 << 20
)

const linkReason = "a symlink, which is not followed"

// rooted implements durable.Ops in one open folder. It uses only the last name of a path, so
// that a directory that is replaced on the way there cannot lead elsewhere.
type rooted struct {
	durable.OS // operations on open files, and syncing
	root       *os.Root
}

func (r rooted) Lstat(path string) (fs.FileInfo, error) { return r.root.Lstat(filepath.Base(path)) }
func (r rooted) Remove(path string) error               { return r.root.Remove(filepath.Base(path)) }
func (r rooted) Rename(from, to string) error {
	return r.root.Rename(filepath.Base(from), filepath.Base(to))
}
func (r rooted) CreateTemp(_, _ string) (*os.File, error) {
	return r.root.OpenFile(durable.TempPrefix+rand.Text(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// A location is an open folder.
type location struct {
	folder place
	root   *os.Root
	ops    durable.Ops
}

// open opens the folder for reading. It returns fs.ErrNotExist if the folder is missing.
func (f *Folder) open(ctx context.Context) (*location, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if f.err != nil {
			return nil, f.err
		}
		at := f.place()
		p, err := at.enter(false)
		if errors.Is(err, fs.ErrNotExist) && !slices.Equal(at.parts, f.place().parts) {
			continue // another process moved the folder
		}
		return p, err
	}
}

// enter opens a folder name by name. If making is set, it creates missing folders and syncs every
// name on the way.
func (p place) enter(making bool) (*location, error) {
	root, err := os.OpenRoot(p.store.dir)
	if err != nil {
		return nil, err
	}
	known := true // false as soon as a directory may not be on disk
	for i := range p.parts {
		at := place{store: p.store, parts: p.parts[:i+1]}
		next, info, err := at.step(root, making)
		if err == nil && making {
			if known = known && p.store.synced.holds(at.dir(), info); !known {
				err = at.syncName(root, info)
			}
		}
		if err := errors.Join(err, root.Close()); err != nil {
			if next != nil {
				err = errors.Join(err, next.Close())
			}
			return nil, err
		}
		root = next
	}
	return &location{folder: p, root: root, ops: p.store.ops(root)}, nil
}

// step opens the folder from the one above it.
func (p place) step(above *os.Root, making bool) (*os.Root, fs.FileInfo, error) {
	name := p.parts[len(p.parts)-1]
	if making {
		if err := above.Mkdir(name, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, nil, err
		}
	}
	info, err := above.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		return nil, nil, notA("a directory", p.rel(""), info)
	}
	root, err := above.OpenRoot(name)
	if err != nil {
		return nil, nil, err
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		return nil, nil, errors.Join(fmt.Errorf("open %s: it was replaced at the same moment", p.dir()), err, root.Close())
	}
	return root, info, nil
}

// syncName makes the folder's name in the one above it durable.
func (p place) syncName(above *os.Root, info fs.FileInfo) error {
	if err := p.store.ops(above).SyncDir(filepath.Dir(p.dir())); err != nil {
		return fmt.Errorf("make %s: sync the directory above it: %w", p.dir(), err)
	}
	p.store.synced[p.dir()] = info
	return nil
}

// A directories has the directories whose names this process has synced, by path. The process
// that created a directory may have died before it synced the name. So each name is synced once,
// and again if the directory or one above it was replaced. Only the holder of the lock uses it.
type directories map[string]fs.FileInfo

func (d directories) holds(path string, info fs.FileInfo) bool {
	known, ok := d[path]
	return ok && os.SameFile(known, info)
}

// makeOwn creates the directory of documents durably.
func (s *Store) makeOwn() error {
	if info, err := os.Stat(s.dir); err == nil && s.synced.holds(s.dir, info) {
		return nil
	}
	if err := makeDir(s.dir); err != nil {
		return err
	}
	clear(s.synced) // the known directories belong to a replaced folder
	info, err := os.Stat(s.dir)
	if err == nil {
		s.synced[s.dir] = info
	}
	return err
}

// makeDir creates a directory and its parents durably.
func makeDir(dir string) error {
	above := filepath.Dir(dir)
	err := os.Mkdir(dir, dirPerm)
	if errors.Is(err, fs.ErrNotExist) && above != dir {
		if err := makeDir(above); err != nil {
			return err
		}
		err = os.Mkdir(dir, dirPerm)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.OS{}.SyncDir(above)
}

func notA(wanted, rel string, info fs.FileInfo) error {
	reason := "not " + wanted
	if info.Mode()&fs.ModeSymlink != 0 {
		reason = linkReason
	}
	return &MalformedError{Path: rel, Reason: reason, Next: "move it away"}
}

func (p *location) close() error { return p.root.Close() }

func (p *location) path(name string) string { return filepath.Join(p.folder.dir(), name) }

// openFile opens a regular file, never through a link.
func (p *location) openFile(ctx context.Context, name string) (*os.File, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		info, err := p.root.Lstat(name)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, notA("a file", p.folder.rel(name), info)
		}
		f, err := p.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // the file may have become a FIFO
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process replaced or removed the file
		}
		if err != nil {
			return nil, err
		}
		opened, err := f.Stat()
		if err == nil && os.SameFile(info, opened) {
			return f, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

func (p *location) read(ctx context.Context, name string) (data []byte, info fs.FileInfo, err error) {
	f, err := p.openFile(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(data) > maxSize {
		err = &MalformedError{Path: p.folder.rel(name), Reason: "larger than any file this program writes",
			Next: "move it away"}
	}
	return data, info, err
}

// write creates or replaces a file atomically and durably.
func (p *location) write(ctx context.Context, name string, data []byte) error {
	if len(data) > maxSize {
		return &lockkeeper.InputError{Field: "document", Value: p.folder.rel(name),
			Reason: fmt.Sprintf("%d bytes, but the limit is %d", len(data), maxSize), Next: "store a smaller document"}
	}
	return p.writer().WriteFile(ctx, p.path(name), data, filePerm)
}

func (p *location) writer() durable.Writer { return durable.Writer{Ops: p.ops} }

func (p *location) remove(name string) error {
	if err := p.ops.Remove(p.path(name)); err != nil {
		return err
	}
	return p.ops.SyncDir(p.folder.dir())
}

// setAside gives a file an unused name in the same folder.
func (p *location) setAside(name string) (kept string, err error) {
	for n := 1; ; n++ {
		kept = fmt.Sprintf("%s.malformed-%d", name, n)
		_, err := p.root.Lstat(kept)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := p.ops.Rename(p.path(name), p.path(kept)); err != nil {
			return "", err
		}
		return p.folder.rel(kept), p.ops.SyncDir(p.folder.dir())
	}
}
