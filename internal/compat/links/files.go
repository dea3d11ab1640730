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
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"lockkeeper"
)

// maxSize is the maximum size of a document.
const maxSize = 32 << 20

// A file is the type of a path in the repository.
type file byte

const (
	nothing file = iota
	regular
	directory
	other   // a symbolic link or a pipe, which must be resolved
	skipped // a directory that was not walked
)

// files is the content of a repository. Before walk, paths are looked up one by one. It is
// safe for concurrent use, except during walk.
type files struct {
	root    *os.Root
	exclude rules

	known      map[string]file // by path; nil until walked
	documents  []string        // regular and not excluded, sorted
	unreadable []unread        // directories that could not be walked
	cached     sync.Map        // path to file, for looked-up paths
}

type unread struct {
	path string
	err  error
}

// walk finds every file, once. It skips excluded directories, the directories of git and
// Lockkeeper, and nested repositories.
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
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
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

// isRepository reports whether a directory is a repository: a submodule or a worktree.
func (f *files) isRepository(dir string) bool {
	_, err := f.root.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// at returns the type of a path, following symbolic links.
func (f *files) at(name string) file {
	if f.known != nil {
		if kind := f.known[name]; kind == regular || kind == directory || !f.beyond(name) {
			return kind
		}
	}
	if kind, ok := f.cached.Load(name); ok {
		return kind.(file)
	}
	kind := nothing
	if info, err := f.root.Stat(filepath.FromSlash(cmp.Or(name, "."))); err == nil {
		kind = regular
		if info.IsDir() {
			kind = directory
		}
	}
	f.cached.Store(name, kind)
	return kind
}

// beyond reports whether a path is a link or a skipped directory, or below one, so that
// walk did not see it.
func (f *files) beyond(name string) bool {
	for here := name; here != "."; here = path.Dir(here) {
		if kind := f.known[here]; kind == other || kind == skipped {
			return true
		}
	}
	return false
}

// read reads a document. It refuses files that could block or are too large.
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

// rules are patterns as in .gitignore. A pattern with a slash is relative to the root, one
// without matches at any depth, and both include everything below.
type rules []rule

type rule struct {
	pattern  string
	anyDepth bool
}

func newRules(key string, patterns []string) (list rules, err error) {
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) || strings.Trim(p, "/") == "" {
			return nil, &lockkeeper.InputError{Field: key, Value: p, Reason: "not a pattern", Next: "write it like archive, docs/**/draft-*.md or https://example.com/*"}
		}
		p = strings.TrimPrefix(strings.TrimSuffix(p, "/"), "./")
		list = append(list, rule{pattern: p, anyDepth: !strings.Contains(p, "/")})
	}
	return list, nil
}

func (r rules) match(name string) bool {
	for _, one := range r {
		if one.match(name) {
			return true
		}
	}
	return false
}

func (r rule) match(name string) bool {
	if !r.anyDepth {
		return doublestar.MatchUnvalidated(r.pattern, name) || doublestar.MatchUnvalidated(r.pattern+"/**", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == r.pattern || doublestar.MatchUnvalidated(r.pattern, part) {
			return true
		}
	}
	return false
}

// split separates the rules for URLs from those for files.
func (r rules) split() (web, local rules) {
	for _, one := range r {
		if strings.Contains(one.pattern, "://") {
			web = append(web, one)
		} else {
			local = append(local, one)
		}
	}
	return web, local
}
