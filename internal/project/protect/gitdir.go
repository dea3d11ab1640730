package protect

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// A gitChecker is the part of a Checker that finds files of git. It caches its results for each
// directory.
type gitChecker struct {
	root     string
	env      func(string) (string, bool)
	inherent gitSettings         // settings of the user, the system and the environment
	read     bool                // inherent was read
	found    map[string][]name   // by directory: the names that a repository or git directory there protects
	files    map[string]gitFacts // parsed configuration files
}

func newGitChecker(root string, env func(string) (string, bool)) *gitChecker {
	return &gitChecker{root: root, env: env, found: map[string][]name{}, files: map[string]gitFacts{}}
}

// around lists the names that the repositories of a root protect: the repository whose work tree
// contains the root, and the one that the environment names.
func (g *gitChecker) around(root string) (list []name) {
	for dir := root; ; dir = filepath.Dir(dir) {
		list = append(list, g.at(dir)...)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if dir, known := g.env("GIT_DIR"); known && dir != "" {
		work, _ := g.env("GIT_WORK_TREE")
		list = append(list, g.repository(absoluteFrom(root, dir), absoluteFrom(root, cmp.Or(work, root)))...)
	}
	return list
}

// above lists the names that repositories and git directories between the root and a path
// protect.
func (g *gitChecker) above(path string) (list []name) {
	if dir := filepath.Dir(path); isGitDir(dir, path) { // the directory becomes a git directory when this file exists
		list = append(list, name{dir, Git})
	}
	for dir := path; dir != g.root && isAtOrBelow(dir, g.root); dir = filepath.Dir(dir) {
		list = append(list, g.at(dir)...)
	}
	return list
}

// at lists the names that one directory protects, as a git directory or as a work tree.
func (g *gitChecker) at(dir string) []name {
	list, known := g.found[dir]
	if known {
		return list
	}
	if isGitDir(dir) {
		list = append(list, g.repository(dir, "")...)
	}
	if at := gitDirOf(dir); at != "" {
		list = append(list, name{filepath.Join(dir, gitDir), Git})
		list = append(list, g.repository(at, dir)...)
	}
	g.found[dir] = list
	return list
}

// repository lists the names that a repository protects, given its git directory and its work
// tree. An empty work tree is unknown.
func (g *gitChecker) repository(dir, work string) []name {
	common := commonDirOf(dir)
	list := []name{{dir, Git}, {common, Git}}
	for _, file := range []string{filepath.Join(common, "config"), filepath.Join(dir, "config.worktree")} {
		list = append(list, g.settings(file, work)...)
	}
	return append(list, g.inherited(work)...)
}

// isGitDir reports whether git would accept a directory as a git directory if each of the
// listed files existed too.
func isGitDir(dir string, also ...string) bool {
	has := func(name string) bool {
		at := filepath.Join(dir, name)
		for _, file := range also {
			if isAtOrBelow(file, at) {
				return true
			}
		}
		_, err := isLink(at)
		return err == nil
	}
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// gitDirOf returns the git directory of a work tree, or "" if dir is not a work tree.
func gitDirOf(dir string) string {
	at := filepath.Join(dir, gitDir)
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return at
	}
	return absoluteFrom(dir, firstLine(at, "gitdir: "))
}

// commonDirOf returns the directory that all work trees of a repository share.
func commonDirOf(dir string) string {
	if shared := firstLine(filepath.Join(dir, "commondir"), ""); shared != "" {
		return absoluteFrom(dir, shared)
	}
	return dir
}

// firstLine returns the text of a small file without white space around it and without a prefix. It
// returns "" if the file does not begin with the prefix.
func firstLine(file, prefix string) string {
	text, err := readSmall(file)
	if err != nil {
		return ""
	}
	if line, ok := strings.CutPrefix(strings.TrimSpace(string(text)), prefix); ok {
		return line
	}
	return ""
}

func absoluteFrom(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// CompletesGit returns the paths, given from the root, that together would turn a directory
// into a git directory.
func (c *Checker) CompletesGit(paths []string) (list []string) {
	root := c.list.opt.Root
	made := map[string][]string{} // by directory: the paths that put one of git's names into it
	for _, path := range paths {
		parts := strings.Split(path, "/")
		for i, part := range parts {
			switch part {
			case "HEAD", "objects", "refs", "commondir":
				dir := strings.Join(parts[:i], "/")
				made[dir] = append(made[dir], path)
			}
		}
	}
	for dir, files := range made {
		also := make([]string, len(files))
		for i, f := range files {
			also[i] = filepath.Join(root, filepath.FromSlash(f))
		}
		if isGitDir(filepath.Join(root, filepath.FromSlash(dir)), also...) {
			list = append(list, files...)
		}
	}
	return list
}
