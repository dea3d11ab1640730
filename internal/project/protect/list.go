package protect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Options configure a List.
type Options struct {
	Root      string                      // of the codebase, absolute; empty: none
	Env       func(string) (string, bool) // as os.LookupEnv; nil: an empty environment
	Own       []string                    // more files of Lockkeeper, from the root
	Documents []string                    // directories of flow documents, from the root
}

// A List says which files agents never write, for one codebase and one user.
type List struct{ opt Options }

// New returns the list of a codebase.
func New(o Options) *List {
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	if o.Root != "" {
		o.Root = Real(o.Root)
	}
	return &List{o}
}

// A Look checks paths against a List. It caches what it finds on the disk, so that many
// files cost little more than one. Use a new Look for each operation.
type Look struct {
	list  *List
	names []name            // protected names, folded
	start []string          // starters, folded, each after a slash
	dirs  map[string]string // directory to where it really is
	git   *gitLook
}

// A name is a protected file or directory.
type name struct {
	path  string // absolute and folded
	class Class
}

// Look returns a Look with an empty cache.
func (l *List) Look() *Look {
	k := &Look{list: l, dirs: map[string]string{}, git: newGitLook(l.opt.Root, l.opt.Env)}
	for _, n := range starters() {
		k.start = append(k.start, "/"+fold(n))
	}
	for path, class := range namesAtHome(l.opt.Env) {
		k.add(path, class)
	}
	if root := l.opt.Root; root != "" {
		k.addBelow(root, Own, OwnDir, ConfigFile)
		k.addBelow(root, Own, l.opt.Own...)
		k.addBelow(root, Documents, l.opt.Documents...)
		k.addBelow(root, Hooks, starters()...)
		for _, n := range k.git.around(root) {
			k.add(n.path, n.class)
		}
	}
	return k
}

func (k *Look) addBelow(root string, class Class, paths ...string) {
	for _, p := range paths {
		k.add(filepath.Join(root, filepath.FromSlash(p)), class)
	}
}

// add protects a file or directory under the given path and under its real one.
func (k *Look) add(path string, class Class) {
	k.names = append(k.names, name{fold(path), class})
	if real := Real(path); real != path {
		k.names = append(k.names, name{fold(real), class})
	}
}

// File reports whether a file, given as an absolute path, is protected or lies in a
// protected directory.
func (k *Look) File(file string) (Class, bool) {
	return k.find(file, isAtOrBelow)
}

// Tree reports whether a directory, given as an absolute path, is protected, lies in a
// protected directory, or is above something protected. Moving, removing or replacing such a
// directory would change protected files. Repositories inside the codebase do not protect
// the directories above them.
func (k *Look) Tree(dir string) (Class, bool) {
	return k.find(dir, func(path, name string) bool { return isAtOrBelow(path, name) || isAtOrBelow(name, path) })
}

func (k *Look) find(file string, meets func(path, name string) bool) (Class, bool) {
	// The name itself counts, and so does the file it leads to.
	spelled := []string{filepath.Join(k.realDir(filepath.Dir(file)), filepath.Base(file))}
	if info, err := os.Lstat(spelled[0]); err == nil && info.Mode()&os.ModeSymlink != 0 {
		spelled = append(spelled, Real(file))
	}
	for _, path := range spelled {
		folded := fold(path)
		for _, n := range k.names {
			if meets(folded, n.path) {
				return n.class, true
			}
		}
		if class, is := k.findInside(path, folded, meets); is {
			return class, true
		}
	}
	return 0, false
}

// findInside finds what is protected at any depth of the codebase.
func (k *Look) findInside(path, folded string, meets func(path, name string) bool) (Class, bool) {
	root := k.list.opt.Root
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
	if k.isStarter(below, meets) {
		return Hooks, true
	}
	for _, n := range k.git.above(path) {
		if isAtOrBelow(folded, fold(n.path)) || isAtOrBelow(folded, fold(Real(n.path))) {
			return n.class, true
		}
	}
	return 0, false
}

// isStarter reports whether a folded path, which begins with a slash, meets a starter in any
// of its directories. A directory above all parts of a starter's name does not.
func (k *Look) isStarter(path string, meets func(path, name string) bool) bool {
	for at := range len(path) {
		if path[at] != '/' {
			continue
		}
		rest := path[at:]
		if slices.ContainsFunc(k.start, func(n string) bool {
			first, _, _ := strings.Cut(n[1:], "/")
			return isAtOrBelow(rest, "/"+first) && meets(rest, n)
		}) {
			return true
		}
	}
	return false
}

// realDir is Real for directories, which many files share.
func (k *Look) realDir(dir string) string {
	real, known := k.dirs[dir]
	if !known {
		real = Real(dir)
		k.dirs[dir] = real
	}
	return real
}

// Below reports the same as File, for a path from the root.
func (k *Look) Below(path string) (Class, bool) {
	return k.File(filepath.Join(k.list.opt.Root, filepath.FromSlash(path)))
}

// CompletesGit returns the paths, given from the root, that together would turn a directory
// into a git directory.
func (k *Look) CompletesGit(paths []string) []string { return k.git.completed(paths) }
