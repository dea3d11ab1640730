//go:build unix

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// repository is a repository of the shared tree. Git is only ever asked there, and
// only for what it knows: never in a workspace, where an agent may have configured
// commands for it to run.
type repository struct {
	work   string // its work tree
	git    string // the directory of this work tree's index and HEAD
	common string // the directory of what all its work trees share
	format string // of its object names
}

// gitPatience is how long git may take to end once it was told to.
const gitPatience = 5 * time.Second

// gitError is what git said when it failed.
type gitError struct {
	args []string
	exit *exec.ExitError
	says string
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s: %s", strings.Join(e.args, " "), e.says)
}
func (e *gitError) Unwrap() error { return e.exit }

// ask returns what git answers, without the newline at its end.
func (r *repository) ask(ctx context.Context, args ...string) (string, error) {
	var out strings.Builder
	err := r.run(ctx, &out, args...)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func (r *repository) run(ctx context.Context, out io.Writer, args ...string) error {
	return r.pipe(ctx, nil, out, args...)
}

// pipe runs git with an input.
func (r *repository) pipe(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.fsmonitor=false"}, args...)...)
	cmd.Dir, cmd.WaitDelay = r.work, gitPatience
	// Told where the repository is, git does not look for another one above; and what is
	// missing there it does not fetch, by whatever command is configured for that.
	cmd.Env = append(withoutPlace(os.Environ()), "GIT_DIR="+filepath.Join(r.work, gitName), "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C")
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
		return &lockkeeper.InputError{Field: "git repository", Value: r.work, Reason: "git is not installed, or not in PATH", Next: "install git"}
	case errors.As(err, &exit):
		says, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return &gitError{args: args, exit: exit, says: says}
	}
	return err
}

// openRepository finds out where the parts of a repository are.
func openRepository(ctx context.Context, work string) (*repository, error) {
	r := &repository{work: work}
	answer, err := r.ask(ctx, "rev-parse", "--git-dir", "--git-common-dir", "--show-object-format")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(answer, "\n")
	if len(lines) != 3 {
		return nil, &lockkeeper.InputError{Field: "git repository", Value: work, Reason: "its path has a newline in it", Next: "move it"}
	}
	r.git, r.common, r.format = abs(work, lines[0]), abs(work, lines[1]), lines[2]
	return r, nil
}

// position is where a repository stands: what a commit, checkout or add changes.
type position struct {
	head   string // the text of HEAD
	commit string // empty: there is none yet
	refs   string // as in packed-refs
	index  look
}

func (r *repository) position(ctx context.Context) (p position, err error) {
	all, err := r.ask(ctx, "for-each-ref", "--format=%(HEAD)%(objectname) %(refname)")
	if err != nil {
		return p, err
	}
	var refs strings.Builder
	for line := range strings.Lines(all) { // the branch that is checked out begins with a star, others with a space
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
	p.index, err = lookAt(unix.AT_FDCWD, filepath.Join(r.git, "index"))
	if isGone(err) {
		err = nil
	}
	return p, err
}

// offBranch finds out where HEAD is that is on no branch, or on one without a commit.
func (r *repository) offBranch(ctx context.Context, p *position) error {
	branch, err := r.ask(ctx, "symbolic-ref", "-q", "HEAD")
	var refused *gitError
	switch {
	case err == nil:
		p.head = "ref: " + branch
		return nil
	case !errors.As(err, &refused):
		return err
	}
	p.commit, err = r.ask(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	p.head = p.commit
	return err
}
