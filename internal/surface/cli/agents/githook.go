package agents

import (
	"context"
	"os"

	"lockkeeper"
	"lockkeeper/internal/git"
	"lockkeeper/internal/project"
)

// These are the values of --git-hook.
const (
	hookCovered = "covered" // refuse what others hold, and changes that no lock covers
	hookHeld    = "held"    // refuse only what others hold
)

// hooks returns the hooks of git that were asked for.
func (o *initOptions) hooks() (list []git.Hook, err error) {
	switch o.gitHook {
	case "", "false":
	case hookCovered, hookHeld, "true":
		list = append(list, git.Hook{Name: "pre-commit", Held: o.gitHook == hookHeld})
	default:
		return nil, &lockkeeper.InputError{Field: "git-hook", Value: o.gitHook, Reason: "unknown", Next: "use --git-hook, or --git-hook=held"}
	}
	if o.pushHook {
		list = append(list, git.Hook{Name: "pre-push"})
	}
	return list, nil
}

// installHook installs a hook of git, and adds it to what init made.
func (p *program) installHook(ctx context.Context, done *project.InitResult, h git.Hook) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	path, err := git.InstallHook(ctx, git.NewWorkTree(done.Root, p.Dir, p.Env), h, program)
	if path != "" {
		done.Made = append(done.Made, path)
	}
	return err
}
