package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lockkeeper"
)

// Follow brings the current branch to its upstream, as git pull --ff-only does: commits of the upstream are added,
// and no file that a person has changed is touched. It locks the files that will change, by their paths from the
// root, while it does so. Without an upstream, or if nothing is new, it does nothing.
func (r *Repo) Follow(ctx context.Context, lock func(paths []string) (unlock func() error, err error)) (err error) {
	if !r.HasUpstream(ctx) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	if _, err := r.git.Line(ctx, "fetch", "--quiet"); err != nil {
		return err
	}
	to, err := r.git.Line(ctx, "rev-parse", "--verify", "--quiet", "@{upstream}^{commit}")
	if err != nil {
		return err
	}
	if head, err := r.git.Line(ctx, "rev-parse", "--verify", "--quiet", "HEAD"); err != nil || head == to {
		return err
	}
	if ahead, err := r.isAncestor(ctx, "HEAD", to); err != nil || !ahead {
		return err // this clone has commits of its own: a person decides what becomes of them
	}
	out, err := r.git.Output(ctx, "", "diff", "--name-only", "--no-renames", "-z", "--relative", "HEAD", to)
	if err != nil {
		return err
	}
	unlock, err := lock(strings.FieldsFunc(out, func(c rune) bool { return c == 0 }))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := r.git.Line(ctx, "merge", "--quiet", "--ff-only", to); err != nil {
		says, _, _ := strings.Cut(saysOf(err), "\n")
		return lockkeeper.WithNext(fmt.Errorf("this clone cannot follow its upstream: %s", says), "git pull")
	}
	return nil
}
