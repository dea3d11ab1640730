package git

import (
	"context"
	"strings"
)

// An Unsaved selects files that only the work tree has, below some paths or everywhere. Git reads
// the paths relative to its directory.
type Unsaved struct {
	Paths     []string
	Literal   bool // the paths are not patterns
	Tracked   bool // files of which git has another version
	Untracked bool
	Ignored   bool
	Shallow   bool // skip directories of which git has no file
}

// Unsaved lists files that git could not restore, and directories in which it ignores
// everything. Paths are absolute. A file that ends with a slash is a nested repository.
func (g *WorkTree) Unsaved(ctx context.Context, q Unsaved) (files, ignored []string, err error) {
	top, err := g.top(ctx)
	if err != nil {
		return nil, nil, err
	}
	take := func(each func(state, path string), options ...string) error {
		if len(q.Paths) > 0 {
			options = append(append(options, "--"), q.Paths...)
		}
		return g.status(ctx, top, q.Literal, each, options...)
	}
	depth := "--untracked-files=all"
	switch {
	case !q.Untracked:
		depth = "--untracked-files=no"
	case q.Shallow:
		depth = "--untracked-files=normal"
	}
	err = take(func(state, path string) {
		switch {
		case state != "??" && q.Tracked, state == "??" && !(q.Shallow && strings.HasSuffix(path, "/")):
			files = append(files, path)
		}
	}, depth)
	if err != nil || !q.Ignored {
		return files, nil, err
	}
	err = take(func(state, path string) {
		switch isDir := strings.HasSuffix(path, "/"); {
		case state != "!!":
		case !isDir:
			files = append(files, path)
		case !q.Shallow:
			ignored = append(ignored, path)
		}
	}, "--untracked-files=normal", "--ignored=traditional")
	return files, ignored, err
}

// A Status is one line of git status: the two letters of git, and an absolute path. The path of a
// directory ends with a slash.
type Status struct{ State, Path string }

// AtRisk lists the paths in the directory that git could not restore: files that differ from the
// last commit, and untracked or ignored files and directories.
func (g *WorkTree) AtRisk(ctx context.Context) (list []Status, err error) {
	top, err := g.top(ctx)
	if err != nil {
		return nil, err
	}
	err = g.status(ctx, top, false, func(state, path string) { list = append(list, Status{state, path}) },
		"--ignore-submodules=none", "--untracked-files=all", "--ignored=matching", "--", ".")
	return list, err
}

// status calls the function each for every line of git status.
func (g *WorkTree) status(ctx context.Context, top string, literal bool, each func(state, path string), options ...string) error {
	args := append([]string{"status", "--porcelain", "-z", "--no-renames"}, options...)
	if literal {
		args = append([]string{"--literal-pathspecs"}, args...)
	}
	out, err := g.run(ctx, args...)
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) > len("?? ") {
			each(entry[:2], top+"/"+entry[3:])
		}
	}
	return err
}
