package gate

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// errIrregular says that a name is neither a file nor a directory, or cannot be read.
var errIrregular = errors.New("neither a file nor a directory")

// observe looks at what a name holds. Nothing is a version, too.
func (g *Gate) observe(dir *os.File, name string) (lockkeeper.Version, error) {
	st, err := g.disk.Lstat(dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lockkeeper.Version{}, nil
	case err != nil:
		return lockkeeper.Version{}, err
	case st.Mode.IsDir():
		return g.observeDir(dir, name)
	case !st.Mode.IsRegular():
		return lockkeeper.Version{}, errIrregular
	}
	f, err := g.disk.OpenFile(dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it left in between
		return lockkeeper.Version{}, nil
	case errors.Is(err, fs.ErrPermission): // whose content nobody can tell
		return lockkeeper.Version{}, errors.Join(errIrregular, err)
	case err != nil:
		return lockkeeper.Version{}, err
	}
	v, err := g.versionOf(f)
	return v, errors.Join(err, g.disk.Close(f))
}

// versionOf reads an open file to its end.
func (g *Gate) versionOf(f *os.File) (lockkeeper.Version, error) {
	info, err := f.Stat()
	if err != nil {
		return lockkeeper.Version{}, err
	}
	if !info.Mode().IsRegular() {
		return lockkeeper.Version{}, errIrregular
	}
	h := sha256.New()
	if err := g.pour(f, h.Write); err != nil {
		return lockkeeper.Version{}, err
	}
	return fileVersion(info.Mode(), h), nil
}

// pourSize is how much of a file is in memory at once.
const pourSize = 32 << 10

// pour reads to the end. What it needs is kept for the next file: most are small, and
// to make a buffer takes longer than to read them.
func (g *Gate) pour(from io.Reader, into func([]byte) (int, error)) error {
	buf, ok := g.buffers.Get().(*[pourSize]byte)
	if !ok {
		buf = new([pourSize]byte)
	}
	defer g.buffers.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 {
			if _, err := into(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func fileVersion(mode fs.FileMode, h hash.Hash) lockkeeper.Version {
	v := lockkeeper.Version{Kind: lockkeeper.File, Mode: mode.Perm()}
	h.Sum(v.Sum[:0])
	return v
}

// observeDir is the version of a directory: of the names, kinds, modes and
// contents of all that is in it.
func (g *Gate) observeDir(at *os.File, name string) (v lockkeeper.Version, err error) {
	dir, err := g.disk.OpenDir(at, name)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, g.disk.Close(dir)) }()
	info, err := dir.Stat()
	if err != nil {
		return v, err
	}
	names, err := g.disk.List(dir)
	if err != nil {
		return v, err
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		in, err := g.observe(dir, name)
		if err != nil {
			return v, fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(h, "%q %s\n", name, in)
	}
	v.Kind, v.Mode = lockkeeper.Dir, info.Mode().Perm()
	h.Sum(v.Sum[:0])
	return v, nil
}

// openParent opens the directory of a path in the tree.
func (g *Gate) openParent(path string) (dir *os.File, name string, err error) {
	parent, name := split(path)
	dir, err = g.disk.OpenDir(g.root, parent)
	return dir, name, err
}

// observePath looks at what a path of the tree holds.
func (g *Gate) observePath(path string) (lockkeeper.Version, error) {
	dir, name, err := g.openParent(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return lockkeeper.Version{}, nil
		}
		return lockkeeper.Version{}, err
	}
	v, err := g.observe(dir, name)
	return v, errors.Join(err, g.disk.Close(dir))
}

// standsAt reports whether a path of the tree still leads into an open directory:
// it may have been moved away, or a link put in its place.
func (g *Gate) standsAt(dir *os.File, path string) (bool, error) {
	now, _, err := g.openParent(path)
	switch {
	case isElsewhere(err) || errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	a, errA := dir.Stat()
	b, errB := now.Stat()
	if err := errors.Join(errA, errB, g.disk.Close(now)); err != nil {
		return false, err
	}
	return os.SameFile(a, b), nil
}

// isElsewhere reports whether a path could not be followed inside the tree: a link
// or a mount is in it, or a file, or a directory that is closed to us.
func isElsewhere(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, fs.ErrPermission)
}
