package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"lockkeeper/internal/git/gitcmd"
	"lockkeeper/internal/machine/disk"

	"lockkeeper"
)

// A WorkTree reads the git work tree of a root. It changes nothing.
type WorkTree struct {
	root string
	git  gitcmd.Command
}

// NewWorkTree returns the work tree of a root, for an environment. In a hook of git it runs git
// in dir, because git's variables are relative to it. Otherwise it runs git in the root.
func NewWorkTree(root, dir string, env []string) *WorkTree {
	g := &WorkTree{root: root, git: gitcmd.Command{Dir: root, Settings: settings, Env: append(gitcmd.Plain(env), "GIT_OPTIONAL_LOCKS=0")}}
	for _, entry := range env {
		if strings.HasPrefix(entry, "GIT_DIR=") || strings.HasPrefix(entry, "GIT_INDEX_FILE=") {
			g.git.Dir = dir
		}
	}
	return g
}

// run returns the output of git.
func (g *WorkTree) run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := g.pipe(ctx, nil, &out, args...)
	return out.String(), err
}

// pipe runs git between a reader and a writer. If git fails, the error is an input error:
// most often the root is in no work tree.
func (g *WorkTree) pipe(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	err := g.git.Run(ctx, in, out, args...)
	var failed *gitcmd.Error
	if errors.As(err, &failed) {
		first, _, _ := strings.Cut(failed.Says, "\n")
		return g.refuse("git says: "+first, "run it in a root that is a git work tree")
	}
	return err
}

func (g *WorkTree) refuse(reason, next string) error {
	return &lockkeeper.InputError{Field: "git repository", Value: g.root, Reason: reason, Next: next}
}

// top returns the real path of the work tree's top directory.
func (g *WorkTree) top(ctx context.Context) (string, error) {
	out, err := g.run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	return disk.RealDir(strings.TrimSuffix(out, "\n"))
}

// WordDiff returns the word diff of a file between the last commit and the work tree, in
// git's porcelain format. Words are separated by spaces, whatever git's configuration says.
// It is empty for an untracked file.
func (g *WorkTree) WordDiff(ctx context.Context, path string) (string, error) {
	return g.run(ctx, "--literal-pathspecs", "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--word-diff=porcelain", "--word-diff-regex=[^[:space:]]+", "HEAD", "--", path)
}

// Identity returns the configured author of commits in a root. Unset values are empty.
func Identity(ctx context.Context, root string, env []string) (name, email string) {
	g := newGit(root, env)
	set := func(key string) string {
		value, err := g.Line(ctx, "config", "--get", key)
		if err != nil { // the setting has no value
			return ""
		}
		return value
	}
	return set("user.name"), set("user.email")
}

// Alias returns what git's configuration makes of a subcommand, or "".
func (g *WorkTree) Alias(ctx context.Context, name string) string {
	does, err := g.run(ctx, "config", "--get", "alias."+name)
	if err != nil { // the alias or the directory does not exist
		return ""
	}
	return strings.TrimSuffix(does, "\n")
}
