package git

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper"
)

// Follow brings the current branch to its upstream, as git pull --ff-only does: commits of the upstream
// are added, and no file that a person has changed is touched. Without an upstream it does nothing.
func (r *Repo) Follow(ctx context.Context) error {
	if !r.HasUpstream(ctx) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	if _, err := r.git.Line(ctx, "fetch", "--quiet"); err != nil {
		return err
	}
	if _, err := r.git.Line(ctx, "merge", "--quiet", "--ff-only", "@{upstream}"); err != nil {
		says, _, _ := strings.Cut(saysOf(err), "\n")
		return lockkeeper.WithNext(fmt.Errorf("this clone cannot follow its upstream: %s", says), "git pull")
	}
	return nil
}
