package app

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper"
)

// Git asks git about the repository that a root is in. It changes nothing.
type Git struct {
	root string
	dir  string // where git runs
	env  []string
}

// NewGit asks with an environment. A hook runs in a directory that git chose,
// with variables that are relative to it; otherwise git runs in the root.
func NewGit(root, dir string, env []string) *Git {
	g := &Git{root: root, dir: root, env: append(env[:len(env):len(env)], "GIT_OPTIONAL_LOCKS=0")}
	for _, entry := range env {
		if strings.HasPrefix(entry, "GIT_DIR=") || strings.HasPrefix(entry, "GIT_INDEX_FILE=") {
			g.dir = dir
		}
	}
	return g
}

// gitPatience is how long git may take to end once it was told to.
const gitPatience = 5 * time.Second

func (g *Git) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.fsmonitor=false"}, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = g.dir, g.env, gitPatience
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return "", g.refuse("git is not installed, or not in PATH", "install git")
	case errors.As(err, &exit):
		first, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return "", g.refuse("git says: "+first, "run it in a root that is a git work tree")
	}
	return "", err
}

func (g *Git) refuse(reason, next string) error {
	return &lockkeeper.InputError{Field: "git repository", Value: g.root, Reason: reason, Next: next}
}

// top is the real path of the work tree's uppermost directory.
func (g *Git) top(ctx context.Context) (string, error) {
	out, err := g.run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	return realDir(strings.TrimSuffix(out, "\n"))
}

// changed lists the changed paths, from the root: those of the work tree, or
// those in the index. Directories, as of nested repositories, end with a slash.
func (g *Git) changed(ctx context.Context, staged bool) ([]string, error) {
	top, err := g.top(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"}
	skip := len("XY ")
	if staged {
		args, skip = []string{"diff", "--cached", "--name-only", "-z", "--no-renames"}, 0
	}
	out, err := g.run(ctx, args...)
	if err != nil {
		return nil, err
	}
	var paths []string
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) <= skip {
			continue
		}
		path := entry[skip:]
		rel, err := filepath.Rel(g.root, filepath.Join(top, path))
		if err != nil || !filepath.IsLocal(rel) {
			continue // in the repository, and not in the root
		}
		if strings.HasSuffix(path, "/") {
			rel += "/"
		}
		paths = append(paths, filepath.ToSlash(rel))
	}
	return paths, nil
}
