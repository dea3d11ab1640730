package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
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

// run is what git answers.
func (g *Git) run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := g.pipe(ctx, nil, &out, args...)
	return out.String(), err
}

// pipe runs git between a reader and a writer.
func (g *Git) pipe(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.fsmonitor=false"}, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = g.dir, g.env, gitPatience
	var complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &complaint
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return g.refuse("git is not installed, or not in PATH", "install git")
	case errors.As(err, &exit):
		first, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return g.refuse("git says: "+first, "run it in a root that is a git work tree")
	}
	return err
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

// WordDiff is what a file of the work tree has that the last commit has not, and the
// other way round, word by word, in git's form for programs. Of a file that git does
// not know it is empty.
func (g *Git) WordDiff(ctx context.Context, path string) (string, error) {
	return g.run(ctx, "--literal-pathspecs", "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--word-diff=porcelain", "HEAD", "--", path)
}
