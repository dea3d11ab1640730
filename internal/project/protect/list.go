package protect

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Options configure a List.
type Options struct {
	Root      string                      // root of the codebase, absolute; empty: none
	Env       func(string) (string, bool) // looks up a variable, as os.LookupEnv does; nil: an empty environment
	Own       []string                    // more files of Lockkeeper, from the root
	Documents []string                    // directories of flow documents, from the root
}

// A List says which files agents never write, for one codebase and one user.
type List struct{ opt Options }

func New(o Options) *List {
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	if o.Root != "" {
		o.Root = Real(o.Root)
	}
	return &List{o}
}

// A Checker checks paths against a List. It caches what it finds on the disk, so that many
// files cost little more than one. Use a new Checker for each operation.
type Checker struct {
	list  *List
	names []name           // protected names, folded
	start []string         // starters, folded, each after a slash
	dirs  map[string]place // by directory
	git   *gitChecker
}

// A place is the real path of a file or directory.
type place struct {
	real    string
	missing bool // then nothing is below it
}

// A name is a protected file or directory.
type name struct {
	path  string // absolute and folded
	class Class
}

// Checker returns a Checker with an empty cache.
func (l *List) Checker() *Checker {
	c := &Checker{list: l, dirs: map[string]place{}, git: newGitChecker(l.opt.Root, l.opt.Env)}
	for _, n := range starters() {
		c.start = append(c.start, "/"+fold(n))
	}
	for path, class := range namesAtHome(l.opt.Env) {
		c.add(path, class)
	}
	if root := l.opt.Root; root != "" {
		c.addBelow(root, Own, OwnDir, ConfigFile)
		c.addBelow(root, Own, l.opt.Own...)
		c.addBelow(root, Documents, l.opt.Documents...)
		c.addBelow(root, Hooks, starters()...)
		for _, n := range c.git.around(root) {
			c.add(n.path, n.class)
		}
	}
	return c
}

func (c *Checker) addBelow(root string, class Class, paths ...string) {
	for _, p := range paths {
		c.add(filepath.Join(root, filepath.FromSlash(p)), class)
	}
}

// add protects a file or directory under the given path and under its real one.
func (c *Checker) add(path string, class Class) {
	c.names = append(c.names, name{fold(path), class})
	if at := c.real(path); at.real != path {
		c.names = append(c.names, name{fold(at.real), class})
	}
}

// File reports whether a file, given as an absolute path, is protected or lies in a
// protected directory.
func (c *Checker) File(file string) (Class, bool) {
	return c.find(file, isAtOrBelow)
}

// Tree reports whether a directory, given as an absolute path, is protected, lies in a
// protected directory, or is above something protected. Moving, removing or replacing such a
// directory would change protected files. Repositories inside the codebase do not protect
// the directories above them.
func (c *Checker) Tree(dir string) (Class, bool) {
	return c.find(dir, func(path, name string) bool { return isAtOrBelow(path, name) || isAtOrBelow(name, path) })
}

func (c *Checker) find(file string, matches func(path, name string) bool) (Class, bool) {
	// The path itself is checked, and the path of the file that it leads to.
	spelled := []string{filepath.Join(c.realDir(filepath.Dir(file)).real, filepath.Base(file))}
	if link, _ := isLink(spelled[0]); link {
		spelled = append(spelled, Real(file))
	}
	for _, path := range spelled {
		folded := fold(path)
		for _, n := range c.names {
			if matches(folded, n.path) {
				return n.class, true
			}
		}
		if class, is := c.findInside(path, folded, matches); is {
			return class, true
		}
	}
	return 0, false
}

// findInside finds names that are protected at any depth of the codebase.
func (c *Checker) findInside(path, folded string, matches func(path, name string) bool) (Class, bool) {
	root := c.list.opt.Root
	if root == "" || !isAtOrBelow(path, root) {
		return 0, false
	}
	below := strings.TrimPrefix(folded, fold(root))
	switch {
	case strings.Contains(below+"/", "/"+OwnDir+"/"):
		return Own, true
	case strings.Contains(below+"/", "/"+gitDir+"/"):
		return Git, true
	}
	if c.isStarter(below, matches) {
		return Hooks, true
	}
	for _, n := range c.git.above(path) {
		if isAtOrBelow(folded, fold(n.path)) || isAtOrBelow(folded, fold(Real(n.path))) {
			return n.class, true
		}
	}
	return 0, false
}

// isStarter reports whether a folded path, which begins with a slash, matches a starter in any of
// its directories. A path that contains no part of a starter's name does not match.
func (c *Checker) isStarter(path string, matches func(path, name string) bool) bool {
	for at := range len(path) {
		if path[at] != '/' {
			continue
		}
		rest := path[at:]
		first, _, _ := strings.Cut(rest[1:], "/")
		if slices.ContainsFunc(starterEndings(), func(ending string) bool { return strings.HasSuffix(first, ending) }) {
			return true
		}
		if slices.ContainsFunc(c.start, func(n string) bool {
			first, _, _ := strings.Cut(n[1:], "/")
			return isAtOrBelow(rest, "/"+first) && matches(rest, n)
		}) {
			return true
		}
	}
	return false
}

// realDir returns the place of a clean directory and caches it, because many files share a directory.
func (c *Checker) realDir(dir string) place {
	if dir == filepath.Dir(dir) {
		return place{real: dir}
	}
	at, known := c.dirs[dir]
	if !known {
		at = c.real(dir)
		c.dirs[dir] = at
	}
	return at
}

// real returns the place of a clean path. It looks only at the last name if the directory is cached,
// and not even at that if the directory is missing.
func (c *Checker) real(path string) place {
	dir := c.realDir(filepath.Dir(path))
	at := place{filepath.Join(dir.real, filepath.Base(path)), dir.missing}
	if at.missing {
		return at
	}
	link, err := isLink(at.real)
	if link {
		return place{real: Real(at.real)}
	}
	at.missing = errors.Is(err, fs.ErrNotExist)
	return at
}

// isLink reports whether there is a symbolic link. Each call of a hook looks at more than a hundred
// names, so it allocates nothing.
func isLink(path string) (bool, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK, err
}

// Below reports the same as File, for a path from the root.
func (c *Checker) Below(path string) (Class, bool) {
	return c.File(filepath.Join(c.list.opt.Root, filepath.FromSlash(path)))
}

// A Class says why a file is protected, and so who may change it.
type Class uint8

// The classes. Agents write none of them.
const (
	Git       Class = iota + 1 // belongs to git
	Hooks                      // is a hook, or decides which programs agents, editors, shells and hooks start
	Own                        // belongs to Lockkeeper
	Documents                  // is a document of a flow
)

// rules says for each class why agents do not write its files, and what to do instead.
var rules = map[Class]struct{ reason, next string }{
	Git:       {"it belongs to git", "use git"},
	Hooks:     {"it is a hook, or decides which programs agents, editors, shells and hooks start, so only a person changes it", "let a person edit it"},
	Own:       {"it is Lockkeeper's own file, so only a person changes it", "let a person edit it"},
	Documents: {"it is a document of a flow, so only the flow and people change it", "lockkeeper decide, or let a person edit it"},
}

// Reason says why agents do not write a file of this class.
func (c Class) Reason() string { return rules[c].reason }

// Next says what to do instead.
func (c Class) Next() string { return rules[c].next }
