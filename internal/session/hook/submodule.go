package hook

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"lockkeeper/internal/git"
)

// submodule reads a git submodule command: what foreach runs in each submodule, and whether the
// command changes the files of submodules.
func (r *reader) submodule(dir string, args []string, s *syntax.Stmt) {
	w := noValues.read(args)
	if len(w.operands) == 0 {
		return
	}
	switch act := w.operands[0]; act {
	case "foreach":
		words := args[slices.Index(args, act)+1:]
		for len(words) > 0 && strings.HasPrefix(words[0], "-") {
			words = words[1:]
		}
		if len(words) == 0 {
			return
		}
		for _, sub := range submodulesOf(dir) {
			r.branch(func() {
				r.inner(func(in *reader) {
					if in.dir = sub; len(words) == 1 {
						in.script(words[0])
					} else {
						in.command(words, s)
					}
				})
			})
		}
	case "update":
		asked := &git.Asked{Act: "submodule update"}
		if w.has("-f", "--force", "--remote", "--merge", "--rebase") {
			asked = nil
		}
		r.rewritesSubmodules("git submodule update", dir, asked)
	case "deinit":
		r.rewritesSubmodules("git submodule deinit", dir, nil)
	}
}

// rewritesSubmodules notes that a git command may rewrite the work trees of submodules.
func (r *reader) rewritesSubmodules(name, dir string, asked *git.Asked) {
	for _, sub := range submodulesOf(dir) {
		r.plan.Git = append(r.plan.Git, GitAct{Name: name, Dir: sub, Asked: asked})
	}
}

// recurses reports whether a git command that rewrites files may do so in submodules too.
func recurses(dir string, given []string) bool {
	names := func(text string) bool { return strings.Contains(strings.ToLower(text), "recurse") }
	return slices.ContainsFunc(given, names) || names(contentOf(filepath.Join(topOf(dir), ".git", "config")))
}

// submodulesOf lists the directories of the submodules that are checked out in a work tree, and
// of those in them.
func submodulesOf(dir string) (list []string) {
	top := topOf(dir)
	if top == "" {
		return nil
	}
	for line := range strings.Lines(contentOf(filepath.Join(top, ".gitmodules"))) {
		key, path, _ := strings.Cut(strings.TrimSpace(line), "=")
		sub := absolute(top, strings.TrimSpace(path))
		if strings.TrimSpace(key) == "path" && filepath.IsLocal(strings.TrimSpace(path)) && isThere(filepath.Join(sub, ".git")) && !slices.Contains(list, sub) {
			list = append(append(list, sub), submodulesOf(sub)...)
		}
	}
	return list
}
