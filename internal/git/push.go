package git

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper"
)

// Push pushes a commit to the upstream of the current branch. The person's hooks run.
func (r *Repo) Push(ctx context.Context, commit string) error {
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
	_, err = r.git.Line(ctx, "push", "--quiet", remote, commit+":"+merge)
	if says := saysOf(err); strings.Contains(says, "rejected") || strings.Contains(says, "fetch first") {
		return lockkeeper.WithNext(fmt.Errorf("cannot push %s: %s has commits that this clone lacks", commit, remote), "git pull --rebase && git push")
	}
	return err
}
