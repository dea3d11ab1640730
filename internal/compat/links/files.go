package links

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
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

const maxSize = 32 << 20

// A file is the type of a path in the repository.
type file byte

const (
	nothing file = iota
	regular
	directory
)

// files is the content of a repository. It is safe for concurrent use, except during walk.
type files struct {
	root    *os.Root
	exclude rules
	cached  sync.Map // path to file, for looked-up paths

	// walk fills these fields.
	walked     bool
	names      []string // paths of files and directories
	documents  []string // paths of the documents that are regular files and not excluded, sorted
	unreadable []unread // directories that could not be walked
}

type unread struct {
	path string
	err  error
}

// walk finds every file, once. It skips excluded directories, the directories of git and
// Lockkeeper, and nested repositories.
func (f *files) walk(ctx context.Context) error {
	if f.walked {
		return nil
	}
	err := fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case name == ".":
			return err
		case errors.Is(err, fs.ErrNotExist): // the file was removed meanwhile
			return nil
		case err != nil:
			f.unreadable = append(f.unreadable, unread{name, err})
			return nil
		case d.IsDir() && (f.exclude.match(name) || isReserved(d.Name()) || f.isRepository(name)):
			return fs.SkipDir
		case !d.IsDir() && !d.Type().IsRegular() && f.at(name) == nothing: // the name is a dangling symbolic link
			return nil
		case d.Type().IsRegular() && isDocument(name) && !f.exclude.match(name):
			f.documents = append(f.documents, name)
		}
		f.names = append(f.names, name)
		return nil
	})
	slices.Sort(f.documents)
	f.walked = err == nil
	return err
}

func isReserved(name string) bool { return name == ".git" || name == ".lockkeeper" }

// isRepository reports whether a directory is a repository: a submodule or a worktree.
func (f *files) isRepository(dir string) bool {
	_, err := f.root.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// at returns the type of a path, following symbolic links.
func (f *files) at(name string) file {
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
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // the file became shorter while it was read
		err = nil
	}
	return text[:n], err
}

var errTooLarge = errors.New("larger than 32 MiB")

// rules are patterns as in .gitignore. A pattern with a slash is relative to the root. A pattern
// without a slash matches at any depth. Both include everything below.
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

// A target is the parsed target of a reference.
type target struct {
	url      string // empty if in the repository
	path     string // path, decoded, with slashes; empty for the document itself
	literal  string // the same text, not decoded
	fragment string // fragment, decoded
	rest     string // query and fragment as written
	foreign  bool   // the link has another scheme, such as mailto
	machine  bool   // the link is an absolute path of one machine
}

// targetOf parses a target as a browser does: a URL, or a path with query and fragment.
func targetOf(r Reference) target {
	written := r.Target
	if r.Kind == Link || r.Kind == Image || r.Kind == Definition || r.Kind == Mention {
		switch scheme := schemeOf(written); {
		case scheme == "http" || scheme == "https":
			return target{url: written}
		case strings.HasPrefix(written, "//"):
			return target{url: "https:" + written}
		case scheme == "file" || len(scheme) == 1:
			return target{machine: true, path: written}
		case scheme != "":
			return target{foreign: true}
		}
	}
	t := target{literal: written}
	if cut := strings.IndexAny(written, "?#"); cut >= 0 {
		t.literal, t.rest = written[:cut], written[cut:]
	}
	if _, fragment, ok := strings.Cut(t.rest, "#"); ok {
		t.fragment = decoded(fragment)
	}
	t.path = t.literal
	if r.Kind != Code && r.Kind != Mention {
		t.path = decoded(t.literal)
	}
	return t
}

// schemeOf returns the lower-case scheme of a URL. A single letter is a drive, and a
// prefix with a dot is a file name.
func schemeOf(written string) string {
	for i := range len(written) {
		c := written[i]
		switch {
		case c == ':' && i > 0:
			return strings.ToLower(written[:i])
		case !isLetter(c) && (i == 0 || !('0' <= c && c <= '9' || c == '+' || c == '-')):
			return ""
		}
	}
	return ""
}

// decoded resolves percent encoding and leaves invalid codes as they are.
func decoded(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// joined resolves a path relative to a document. It returns false if the path leaves the
// root. A leading slash means the root.
func joined(document, written string) (string, bool) {
	if strings.HasPrefix(written, "/") {
		return strings.TrimPrefix(path.Clean(written), "/"), true
	}
	at := path.Join(path.Dir(document), written)
	if at == ".." || strings.HasPrefix(at, "../") {
		return "", false
	}
	if at == "." {
		at = ""
	}
	return at, true
}

// isBuiltinAnchor reports whether every file has an anchor: its top, or a line of its
// source.
func isBuiltinAnchor(fragment string) bool {
	if fragment == "" || strings.EqualFold(fragment, "top") {
		return true
	}
	first, last, _ := strings.Cut(fragment, "-")
	return isLine(first) && (last == "" || isLine(last))
}

func isLine(s string) bool {
	digits, ok := strings.CutPrefix(s, "L")
	return ok && digits != "" && strings.Trim(digits, "0123456789C") == ""
}
