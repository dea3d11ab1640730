package links

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// maxSize is how large a document may be.
const maxSize = 32 << 20

// file is what a path of the repository is.
type file byte

const (
	nothing file = iota
	regular
	directory
	other   // a link of the disk, a pipe: what it leads to has to be looked up
	skipped // a directory that was not walked
)

// files is what a repository holds. Until it was walked, paths are looked up one
// by one. Several may look at once, but not while it is walked.
type files struct {
	root    *os.Root
	exclude rules

	known      map[string]file // by path; nil until walked
	documents  []string        // regular and not excluded, sorted
	unreadable []unread        // directories that could not be walked
	looked     sync.Map        // path to file, of what was looked up
}

type unread struct {
	path string
	err  error
}

// walk finds every file, once. Nothing below an excluded directory is found, nor
// what git and Lockkeeper keep, nor other repositories.
func (f *files) walk(ctx context.Context) error {
	if f.known != nil {
		return nil
	}
	known := map[string]file{"": directory}
	err := fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case name == ".":
			return err
		case errors.Is(err, fs.ErrNotExist): // gone meanwhile
			return nil
		case err != nil:
			f.unreadable = append(f.unreadable, unread{name, err})
			return nil
		case d.IsDir() && (f.exclude.match(name) || isReserved(d.Name()) || f.isRepository(name)):
			known[name] = skipped
			return fs.SkipDir
		case d.IsDir():
			known[name] = directory
		case d.Type().IsRegular():
			known[name] = regular
			if isDocument(name) && !f.exclude.match(name) {
				f.documents = append(f.documents, name)
			}
		default:
			known[name] = other
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(f.documents)
	f.known = known
	return nil
}

func isReserved(name string) bool { return name == ".git" || name == ".lockkeeper" }

// isRepository reports whether a directory is one of its own: a submodule or a
// worktree.
func (f *files) isRepository(dir string) bool {
	_, err := f.root.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// at is what a path is, links of the disk followed.
func (f *files) at(name string) file {
	if f.known != nil {
		if kind := f.known[name]; kind == regular || kind == directory || !f.beyond(name) {
			return kind
		}
	}
	if kind, ok := f.looked.Load(name); ok {
		return kind.(file)
	}
	kind := nothing
	if info, err := f.root.Stat(filepath.FromSlash(cmp.Or(name, "."))); err == nil {
		kind = regular
		if info.IsDir() {
			kind = directory
		}
	}
	f.looked.Store(name, kind)
	return kind
}

// beyond reports whether the walk could not see a path: it is, or is below, a link
// or a directory that was not walked.
func (f *files) beyond(name string) bool {
	for here := name; here != "."; here = path.Dir(here) {
		if kind := f.known[here]; kind == other || kind == skipped {
			return true
		}
	}
	return false
}

// read reads a document. What could keep a reader waiting, or fill the memory, is
// refused.
func (f *files) read(name string) ([]byte, error) {
	in, err := f.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > maxSize:
		return nil, errTooLarge
	}
	text := make([]byte, info.Size(), info.Size()+1)
	n, err := io.ReadFull(in, text)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // it shrank meanwhile
		err = nil
	}
	return text[:n], err
}

var errTooLarge = errors.New("larger than 32 MiB")
