package git

import (
	"context"
	"strings"

	"lockkeeper"
)

// Switch switches to a branch. It creates a missing branch at HEAD. Git refuses to
// overwrite uncommitted changes.
func (r *Repo) Switch(ctx context.Context, branch string) error {
	if err := r.checkBranch(ctx, branch); err != nil {
		return err
	}
	s, err := r.State(ctx)
	if err != nil || s.Branch == branch {
		return err
	}
	args := []string{"switch", "--quiet", "--no-guess", branch}
	_, err = r.git.Line(ctx, "show-ref", "--verify", "--quiet", branchRefs+branch)
	switch {
	case exitOf(err) == 1:
		args = []string{"switch", "--quiet", "--no-track", "--create", branch}
	case err != nil:
		return err
	}
	_, err = r.change(ctx, "", args...)
	if exitOf(err) != 0 {
		return &lockkeeper.RefusedError{Act: "git switch " + branch + " in " + r.top, Reason: saysOf(err),
			Next: "commit or stash these changes, or name another branch"}
	}
	return err
}

func (r *Repo) checkBranch(ctx context.Context, branch string) error {
	wrong := &lockkeeper.InputError{Field: "branch", Value: branch, Reason: "not a valid branch name", Next: "choose another one, for example lockkeeper/run"}
	if branch == "" || branch == "HEAD" || strings.HasPrefix(branch, "-") {
		return wrong
	}
	_, err := r.git.Line(ctx, "check-ref-format", branchRefs+branch)
	if exitOf(err) == 1 {
		return wrong
	}
	return err
}
