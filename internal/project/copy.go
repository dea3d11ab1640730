package project

import (
	"context"
	"errors"
	"fmt"
	"os"

	"lockkeeper"
	"lockkeeper/internal/git"
	"lockkeeper/internal/project/config"
)

// CheckCopy refuses locks on files, and on directories with files, of which another machine has
// landed a newer version than this machine has. It applies only if several machines work on the
// codebase.
func (a *Project) CheckCopy(ctx context.Context, locks []lockkeeper.Lock) error {
	if a.Config.Deployment != config.MultiNode {
		return nil
	}
	g, err := a.Gate()
	if err != nil {
		return err
	}
	targets := make([]lockkeeper.Target, len(locks))
	for i, l := range locks {
		targets[i] = l.Target
	}
	return a.notPulled(ctx, g.CheckCopy(ctx, targets...))
}

// CheckTree does the same for the whole tree.
func (a *Project) CheckTree(ctx context.Context) error {
	return a.CheckCopy(ctx, []lockkeeper.Lock{{Target: lockkeeper.Target{Path: lockkeeper.Root, Kind: lockkeeper.Dir}, Mode: lockkeeper.Read}})
}

// notPulled removes the files whose landing this copy contains from an error of the gate: they
// were committed, came by git, and have changed since.
func (a *Project) notPulled(ctx context.Context, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	repo, open := git.Open(ctx, a.Root.Dir(), os.Environ())
	if _, none := errors.AsType[*git.NoneError](open); none {
		return a.named(ctx, joined.Unwrap(), nil)
	}
	if open != nil {
		return errors.Join(err, open)
	}
	var left []error
	for _, err := range joined.Unwrap() {
		behind, ok := errors.AsType[*lockkeeper.BehindError](err)
		if ok {
			has, err := repo.Has(ctx, behind.Path, behind.Want, behind.At)
			if err != nil {
				return err
			}
			if has {
				continue
			}
		}
		left = append(left, err)
	}
	return a.named(ctx, left, repo)
}

// behindNamed is how many files a refusal names.
const behindNamed = 5

// named joins errors. It adds the command that updates this copy, and says how many more there are.
func (a *Project) named(ctx context.Context, list []error, repo *git.Repo) error {
	if len(list) == 0 {
		return nil
	}
	next := "copy these files from the other machine, then try again"
	if repo != nil {
		next = "git pull"
		if !repo.HasUpstream(ctx) {
			next = "git pull REMOTE BRANCH, with the branch to which the other machine pushes"
		}
	}
	all := len(list)
	list = list[:min(all, behindNamed)]
	for _, err := range list {
		if behind, ok := errors.AsType[*lockkeeper.BehindError](err); ok {
			behind.Next = next
		}
	}
	if all > behindNamed {
		list = append(list, fmt.Errorf("and %d more files", all-behindNamed))
	}
	return errors.Join(list...)
}
