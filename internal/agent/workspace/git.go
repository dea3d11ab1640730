package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/git/gitcmd"
)

// A repository is a repository of the shared tree. Git runs only there and only to read,
// never in a workspace, where an agent may have configured commands for it to run.
type repository struct {
	work   string // its work tree
	gitDir string // the directory of this work tree's index and HEAD
	common string // the directory that all its work trees share
	format string // the format of its object ids
}

// git returns the command that runs git in the work tree. Git does not search for a
// repository in a parent directory, and does not fetch missing objects, which could run a
// configured command.
func (r *repository) git() gitcmd.Command {
	return gitcmd.Command{Dir: r.work, Settings: []string{"-c", "core.fsmonitor=false"},
		Env: append(withoutPlace(os.Environ()), "GIT_DIR="+filepath.Join(r.work, gitName), "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C")}
}

// openRepository returns the repository of a work tree.
func openRepository(ctx context.Context, work string) (*repository, error) {
	r := &repository{work: work}
	answer, err := r.git().Line(ctx, "rev-parse", "--git-dir", "--git-common-dir", "--show-object-format")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(answer, "\n")
	if len(lines) != 3 {
		return nil, &lockkeeper.InputError{Field: "git repository", Value: work, Reason: "its path has a newline in it", Next: "move it"}
	}
	r.gitDir, r.common, r.format = abs(work, lines[0]), abs(work, lines[1]), lines[2]
	return r, nil
}

// A position is the state of a repository that a commit, checkout or add changes.
type position struct {
	head   string // the text of HEAD
	commit string // empty if there is no commit yet
	refs   string // as in packed-refs
	index  fileStat
}

func (r *repository) position(ctx context.Context) (p position, err error) {
	all, err := r.git().Line(ctx, "for-each-ref", "--format=%(HEAD)%(objectname) %(refname)")
	if err != nil {
		return p, err
	}
	var refs strings.Builder
	for line := range strings.Lines(all) { // a star marks the current branch, a space the others
		if current, ok := strings.CutPrefix(line, "*"); ok {
			commit, branch, _ := strings.Cut(strings.TrimSuffix(current, "\n"), " ")
			p.head, p.commit = "ref: "+branch, commit
		}
		refs.WriteString(line[1:])
	}
	p.refs = refs.String()
	if p.head == "" {
		if err := r.offBranch(ctx, &p); err != nil {
			return p, err
		}
	}
	p.index, err = statAt(unix.AT_FDCWD, filepath.Join(r.gitDir, "index"))
	if isGone(err) {
		err = nil
	}
	return p, err
}

// offBranch sets HEAD if it is detached, or on a branch without a commit.
func (r *repository) offBranch(ctx context.Context, p *position) error {
	branch, err := r.git().Line(ctx, "symbolic-ref", "-q", "HEAD")
	var refused *gitcmd.Error
	switch {
	case err == nil:
		p.head = "ref: " + branch
		return nil
	case !errors.As(err, &refused):
		return err
	}
	p.commit, err = r.git().Line(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	p.head = p.commit
	return err
}
