package app

import (
	"context"
	"strings"
)

// Unsaved is a question for what only the work tree has: in some paths, as git reads them
// where it is asked, or everywhere.
type Unsaved struct {
	Paths     []string
	Literal   bool // the paths are names, and no patterns
	Tracked   bool // what git has, but in another version
	Untracked bool
	Ignored   bool
	Shallow   bool // nothing in directories of which git has no file
}

// Unsaved lists files, absolute, that git could not bring back, and apart from them
// directories in which it ignores everything. A file that ends with a slash is a repository
// of its own.
func (g *Git) Unsaved(ctx context.Context, q Unsaved) (files, ignored []string, err error) {
	top, err := g.top(ctx)
	if err != nil {
		return nil, nil, err
	}
	take := func(each func(state, path string), options ...string) error {
		args := append([]string{"status", "--porcelain", "-z", "--no-renames"}, options...)
		if q.Literal {
			args = append([]string{"--literal-pathspecs"}, args...)
		}
		if len(q.Paths) > 0 {
			args = append(append(args, "--"), q.Paths...)
		}
		out, err := g.run(ctx, args...)
		for entry := range strings.SplitSeq(out, "\x00") {
			if len(entry) > len("?? ") {
				each(entry[:2], top+"/"+entry[3:])
			}
		}
		return err
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
