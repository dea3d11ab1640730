package git

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper"
)

// pushTries is how often Push tries. An attempt fails if another clone pushes in the same moment.
const pushTries = 3

// Push pushes a commit to the upstream of the current branch, unless the upstream has it already. The person's
// hooks run. Only one goroutine pushes at a time.
func (r *Repo) Push(ctx context.Context, commit string) error {
	r.pushing.Lock()
	defer r.pushing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	branch, err := r.git.Line(ctx, "symbolic-ref", "--short", "--quiet", "HEAD")
	if err != nil {
		return lockkeeper.WithNext(fmt.Errorf("cannot push %s: no branch is checked out", commit), "git switch to the branch of the run")
	}
	remote, err := r.git.Line(ctx, "config", "branch."+branch+".remote")
	merge, merged := r.git.Line(ctx, "config", "branch."+branch+".merge")
	if err != nil || merged != nil {
		return lockkeeper.WithNext(fmt.Errorf("cannot push %s: the branch %s has no upstream", commit, branch), "git push -u REMOTE "+branch)
	}
	if known, err := r.git.Line(ctx, "rev-parse", "--verify", "--quiet", branch+"@{upstream}"); err == nil {
		if has, err := r.isAncestor(ctx, commit, known); has || err != nil {
			return err
		}
	}
	for range pushTries {
		_, err = r.git.Line(ctx, "push", "--quiet", remote, commit+":"+merge)
		if says := saysOf(err); !strings.Contains(says, "rejected") && !strings.Contains(says, "fetch first") {
			return err
		}
		has, ahead, unknown := r.compare(ctx, commit, remote, merge)
		switch {
		case unknown != nil:
			return fmt.Errorf("%w; then: %w", err, unknown)
		case has:
			return nil
		case !ahead:
			return lockkeeper.WithNext(fmt.Errorf("cannot push %s: %s has commits that this clone lacks", commit, remote), "git pull --rebase && git push")
		}
	}
	return err
}

// compare fetches a branch. It reports whether the branch has a commit, and whether the commit has the whole branch.
func (r *Repo) compare(ctx context.Context, commit, remote, branch string) (has, ahead bool, err error) {
	line, err := r.git.Line(ctx, "ls-remote", "--exit-code", remote, branch)
	if err != nil {
		return false, false, err
	}
	tip, _, _ := strings.Cut(line, "\t")
	if _, err := r.git.Line(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", remote, branch); err != nil {
		return false, false, err
	}
	if has, err = r.isAncestor(ctx, commit, tip); has || err != nil {
		return has, false, err
	}
	ahead, err = r.isAncestor(ctx, tip, commit)
	return false, ahead, err
}

// isAncestor reports whether a commit is in the history of another.
func (r *Repo) isAncestor(ctx context.Context, commit, of string) (bool, error) {
	out, err := r.git.Line(ctx, "rev-list", "--max-count=1", commit, "--not", of)
	return out == "" && err == nil, err
}
