package parcel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper/internal/git/gitcmd"
)

// A Repo makes and reads parcels in the repository of a root.
type Repo struct {
	prefix string // the path from the top of the work tree to the root: empty, or ending with a slash
	dir    string // the directory of this work tree's index
	temp   string // a directory for indexes
	git    gitcmd.Command
}

var settings = []string{"-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.abbrev=no",
	"-c", "core.hooksPath=" + os.DevNull, "-c", "advice.addEmbeddedRepo=false", "-c", "core.splitIndex=false", "-c", "protocol.version=2"}

// identity is the author of parcels, which are no commits of a person.
var identity = []string{"GIT_AUTHOR_NAME=lockkeeper", "GIT_AUTHOR_EMAIL=lockkeeper@localhost", "GIT_COMMITTER_NAME=lockkeeper", "GIT_COMMITTER_EMAIL=lockkeeper@localhost",
	"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=:", "LANGUAGE=C"}

// Open opens the repository of a root. It keeps indexes in the directory temp, which the caller
// removes.
func Open(ctx context.Context, root, temp string, env []string) (*Repo, error) {
	r := &Repo{temp: temp, git: gitcmd.Command{Dir: root, Settings: settings, Env: slices.Concat(gitcmd.Outside(env), identity, []string{"PWD=" + root})}}
	out, err := r.git.Output(ctx, "", "rev-parse", "--absolute-git-dir", "--show-prefix")
	if err != nil {
		return nil, fmt.Errorf("open the git repository of %s: %w", root, err)
	}
	dir, prefix, _ := strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
	r.dir, r.prefix = dir, prefix
	return r, os.MkdirAll(temp, 0o700)
}

// Remote returns the remote through which parcels go: the named one, that of the current branch,
// origin, or the only one. It returns "" if there is none.
func (r *Repo) Remote(ctx context.Context, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	branch, err := r.git.Line(ctx, "symbolic-ref", "--short", "--quiet", "HEAD")
	if err == nil {
		if of, err := r.git.Line(ctx, "config", "branch."+branch+".remote"); err == nil && of != "" && of != "." {
			return of, nil
		}
	}
	out, err := r.git.Line(ctx, "remote")
	if err != nil {
		return "", err
	}
	all := strings.Fields(out)
	switch {
	case slices.Contains(all, "origin"):
		return "origin", nil
	case len(all) == 1:
		return all[0], nil
	}
	return "", nil
}

// Head returns the commit of HEAD, or "" if there is none.
func (r *Repo) Head(ctx context.Context) string {
	head, err := r.git.Line(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return ""
	}
	return head
}

// with returns a git that uses an index of its own.
func (r *Repo) with(index string) gitcmd.Command {
	g := r.git
	g.Env = append(slices.Clip(g.Env), "GIT_INDEX_FILE="+index)
	return g
}

// scratch runs fn with the name of an index that is removed afterwards.
func (r *Repo) scratch(fn func(index string) error) error {
	dir, err := os.MkdirTemp(r.temp, "index-")
	if err != nil {
		return err
	}
	return errors.Join(fn(filepath.Join(dir, "index")), os.RemoveAll(dir))
}

// Push pushes a commit to a ref of the remote.
func (r *Repo) Push(ctx context.Context, remote, commit, ref string) error {
	_, err := r.git.Line(ctx, "push", "--quiet", "--no-verify", "--no-signed", remote, "+"+commit+":"+ref)
	return err
}

// Fetch fetches a commit from a ref of the remote. It returns an error if the ref has another one.
func (r *Repo) Fetch(ctx context.Context, remote, ref, commit string) error {
	if _, err := r.git.Line(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--refmap=", remote, "+"+ref+":"+ref); err != nil {
		return err
	}
	has, err := r.git.Line(ctx, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if err == nil && has != commit {
		err = fmt.Errorf("%s of %s is %s, but %s was expected", ref, remote, has, commit)
	}
	return err
}

// Drop removes refs, here and at the remote. Refs that are missing are no error.
func (r *Repo) Drop(ctx context.Context, remote string, refs ...string) error {
	var input strings.Builder
	args := []string{"push", "--quiet", "--no-verify", remote}
	for _, ref := range refs {
		fmt.Fprintf(&input, "delete %s\n", ref)
		args = append(args, ":"+ref)
	}
	_, here := r.git.Output(ctx, input.String(), "update-ref", "--stdin")
	_, there := r.git.Line(ctx, args...)
	var failed *gitcmd.Error
	if errors.As(there, &failed) && strings.Contains(failed.Says, "remote ref does not exist") {
		there = nil
	}
	return errors.Join(here, there)
}

// Refs lists the refs of the remote below a prefix.
func (r *Repo) Refs(ctx context.Context, remote, prefix string) (refs []string, err error) {
	out, err := r.git.Output(ctx, "", "ls-remote", "--refs", remote, prefix+"*")
	for line := range strings.Lines(out) {
		if _, ref, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			refs = append(refs, ref)
		}
	}
	return refs, err
}

// File reads a file of a parcel, up to a limit. It returns nil if the parcel has no such file.
func (r *Repo) File(ctx context.Context, commit, name string, limit int64) ([]byte, error) {
	out, err := r.git.Output(ctx, "", "ls-tree", "-l", commit, "--", name)
	fields := strings.Fields(out) // mode, type, id, size and name
	if err != nil || len(fields) < 4 || fields[1] != "blob" {
		return nil, err
	}
	return r.Blob(ctx, fields[2], limit)
}

// Files lists the files of a parcel, without its trees.
func (r *Repo) Files(ctx context.Context, commit string) (names []string, err error) {
	out, err := r.git.Output(ctx, "", "ls-tree", "-z", commit)
	for _, line := range strings.Split(out, "\x00") {
		if entry, name, ok := strings.Cut(line, "\t"); ok && strings.Contains(entry, " blob ") {
			names = append(names, name)
		}
	}
	return names, err
}

// Blob reads a blob, up to a limit.
func (r *Repo) Blob(ctx context.Context, id string, limit int64) ([]byte, error) {
	b := &bounded{left: limit}
	if err := r.git.Run(ctx, nil, b, "cat-file", "blob", id); err != nil && !b.over {
		return nil, err
	}
	if b.over {
		return nil, fmt.Errorf("%s has more than %d bytes", id, limit)
	}
	return b.text.Bytes(), nil
}

// A bounded buffer refuses to grow beyond a limit.
type bounded struct {
	text bytes.Buffer
	left int64
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		b.over = true
		return 0, io.ErrShortBuffer
	}
	return b.text.Write(p)
}
