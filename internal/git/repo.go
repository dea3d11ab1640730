package git

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/git/gitcmd"
)

// A Repo is the repository of a root. Several goroutines may use it at the same time. A
// caller that changes the repository must hold the lock on .git.
type Repo struct {
	root   string         // real path
	top    string         // the top of the work tree
	prefix string         // the path from top to root: empty, or ending with a slash
	dir    string         // the directory of this work tree's HEAD and index
	common string         // the directory that all work trees share
	git    gitcmd.Command // runs in top

	patience time.Duration // how long an operation waits for git's index.lock

	pushing sync.Mutex // held during a push

	mu     sync.Mutex
	recent map[string]committedPath // the paths that RepairIndex checks
}

// A NoneError reports that a root is in no git work tree.
type NoneError struct {
	Root   string
	Reason string
}

func (e *NoneError) Error() string {
	return lockkeeper.JoinNext(fmt.Sprintf("%s is in no git work tree: %s", e.Root, e.Reason), e.NextStep())
}

func (e *NoneError) NextStep() string { return "continue without commits, or run git init there" }

func (e *NoneError) Code() lockkeeper.Code { return lockkeeper.CodeInput }

// Open opens the repository of a root. Git and the hooks get the environment without the
// variables that select another repository. If the root is in no work tree, Open returns a
// *NoneError.
func Open(ctx context.Context, root string, env []string) (*Repo, error) {
	real, err := filepath.Abs(root)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return nil, err
	}
	g := newGit(real, env)
	inside, err := g.Line(ctx, "rev-parse", "--is-inside-work-tree")
	switch {
	case err != nil && strings.Contains(saysOf(err), "not a git repository"):
		return nil, &NoneError{Root: root, Reason: "neither it nor a parent directory has a repository"}
	case err != nil:
		return nil, fmt.Errorf("open the git repository of %s: %w", root, err)
	case inside != "true":
		return nil, &NoneError{Root: root, Reason: "it is inside a .git directory, or the repository has no work tree"}
	}
	r := &Repo{root: real, patience: lockPatience}
	for _, asked := range []struct {
		what string
		to   *string
	}{{"--show-toplevel", &r.top}, {"--git-dir", &r.dir}, {"--git-common-dir", &r.common}} {
		path, err := g.Line(ctx, "rev-parse", asked.what)
		if err != nil {
			return nil, fmt.Errorf("open the git repository of %s: %w", root, err)
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(real, path)
		}
		*asked.to = filepath.Clean(path)
	}
	below, err := filepath.Rel(r.top, real)
	if err != nil || below != "." && !filepath.IsLocal(below) {
		return nil, &NoneError{Root: root, Reason: "its repository has its work tree in " + r.top}
	}
	if below != "." {
		r.prefix = filepath.ToSlash(below) + "/"
	}
	r.git = newGit(r.top, env)
	return r, nil
}
