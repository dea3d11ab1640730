package hook

import (
	"context"
	"os"
	"slices"
	"strings"

	"lockkeeper/internal/git"
	"lockkeeper/internal/session"
)

// askable lists the options with which a git command does only what git can be asked about
// before it runs. With any other option, it counts as changing everything.
var askable = map[string]allowed{
	"switch": "-q --quiet --progress --no-progress", "checkout": "-q --quiet --progress --no-progress",
	"merge":       "-q -v -n --quiet --verbose --ff --ff-only --no-edit --stat --no-stat --progress --no-progress",
	"rebase":      "-q -v -n --quiet --verbose --stat --no-stat",
	"pull":        "-q -v -n --quiet --verbose --ff --ff-only --no-edit --no-rebase --stat --no-stat --no-tags --progress --no-progress --dry-run",
	"cherry-pick": "-x -n --no-commit --no-edit --quit", "revert": "-n --no-commit --no-edit --quit",
	"reset": "-q --quiet --soft --mixed --hard --keep --merge", "clean": "-f -d -x -X -q -n -e= --force --quiet --exclude= --dry-run",
	"stash":    "-q -k -u -a -S -m= --quiet --keep-index --no-keep-index --include-untracked --all --staged --message= --index",
	"commit":   "-a -q -v -s -n -o -i -m= -F= -C= --all --quiet --message= --file= --amend --no-edit --no-verify --allow-empty --dry-run --short --porcelain --long",
	"branch":   "-m -M -f -q --move --force --quiet",
	"worktree": "-f -b= -B= -d -q --force --detach --checkout --no-checkout --lock --orphan --quiet --track --no-track --guess-remote --no-guess-remote",
	"mv":       "-f -k -n -v --force --verbose --dry-run",
}

// isTrial reports whether a git command changes nothing: it prints its help, or what it would do.
func isTrial(act string, args []string) bool {
	if len(args) > 0 && args[0] == "--help" || len(args) == 1 && args[0] == "-h" || act == "stash" && len(args) == 2 && args[1] == "--help" {
		return true
	}
	grammar, known := askable[act]
	if !known {
		grammar = harmless()["git/"+act]
	}
	w := grammar.read(args)
	return w.known && (w.has("--dry-run") || w.has("-n") && slices.Contains([]string{"add", "clean", "mv", "rm"}, act))
}

// asks returns what to ask git about a command, or nil.
func asks(act string, args []string) *git.Asked {
	w := askable[act].read(args)
	if !w.known || slices.Contains(args, "") || askable[act] == "" {
		return nil
	}
	a := &git.Asked{Act: act, Operands: w.operands, Paths: w.paths}
	for _, o := range w.options {
		switch {
		case o.value == "":
		case strings.HasPrefix(o.name, "--"):
			o.name += "=" + o.value
		default:
			o.name += o.value
		}
		a.Options = append(a.Options, o.name)
	}
	return a
}

func (g GitAct) rewriting() session.Rewriting {
	return session.Rewriting{Act: g.Name, Dir: g.Dir, Reach: func(ctx context.Context) (git.Reach, error) {
		if g.Asked == nil {
			return git.Reach{All: true}, nil
		}
		return git.NewWorkTree(g.Dir, g.Dir, append(os.Environ(), "GIT_TERMINAL_PROMPT=0")).Reach(ctx, *g.Asked)
	}}
}
