package landings

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/git"
	"lockkeeper/internal/git/coverage"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

type changesOptions struct{ staged, quiet, hook, held bool }

func (p *program) changesCommand() *cobra.Command {
	var o changesOptions
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "List changes: yours, held by others, covered by no lock",
		Long: `Compare the work tree with git's last commit, and classify each changed path:

  yours      you hold it, or you changed it last and nobody holds it now: through the
             gate, under a lock, or in your session
  held       another holder has it, or the path from which it was moved; the exit code is 5
  landed     another writer's landing wrote it, and nobody holds it now
  covered    another holder had a write lock on it when the file was last modified
  uncovered  none of these; the exit code is 5

lockkeeper commit commits what is yours. With --held, only what others hold fails.

Staged content that differs from the file is classified separately: it has no time of
modification, so only a lock held now, or a landing, covers it. A git hook can run this
before each commit: see lockkeeper init --git-hook.

Who held what comes from the event log. Changes older than the log are uncovered. For a
deletion, the time of its directory counts. File times are compared with those of the log,
so synchronize the clocks if the store is on another machine.`,
		Example: `  lockkeeper gate changes
  lockkeeper gate changes --staged --held
  lockkeeper lock exec --write app/models/user.rb -- sed -i s/old/new/ app/models/user.rb`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.hook {
				o.staged, o.quiet = true, true
				if root, err := project.IsRoot(p.Settings()); err != nil || !root {
					return p.noRoot(cmd.Context(), err)
				}
			}
			return p.With(cmd.Context(), func(a *project.Project) error {
				ctx, stop := command.Interruptible(cmd.Context())
				defer stop()
				mine, err := p.Mine(ctx)
				if err != nil {
					return err
				}
				done, err := coverage.Find(ctx, a, git.NewWorkTree(a.Root.Dir(), p.Dir, p.Env), mine, o.staged)
				if err != nil {
					return command.Interrupted(ctx, err)
				}
				found := p.tellChanges(done, o)
				if found == nil || !o.hook {
					return found
				}
				return p.overrule(ctx, a, done, o, found)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.staged, "staged", false, "check only what is staged for the next commit")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing if every change passes")
	f.BoolVar(&o.held, "held", false, "fail only if another holder has a changed path")
	f.BoolVar(&o.hook, "hook", false, "run as git's pre-commit hook: --staged --quiet, ask a person at a terminal, and do nothing in a work tree without Lockkeeper")
	return cmd
}

// noRoot lets a commit pass in a work tree that is not a root. Git runs the hook in all work
// trees of the repository.
//
// A person may also commit where the locks were removed. Agents may not, because they could have
// removed them.
//
// It says so once for each repository and cause.
func (p *program) noRoot(ctx context.Context, err error) error {
	text := fmt.Sprintf("%s is not set up for Lockkeeper, so locks are not checked for this commit; lockkeeper uninit, where it is set up, removes this hook", p.Base())
	if gone, ok := errors.AsType[*lockkeeper.StoreError](err); ok && p.NoAgent("commit without locks") == nil {
		text, err = "locks are not checked for this commit: "+gone.Reason+"; lockkeeper uninit removes this hook", nil
	}
	if err != nil {
		return err
	}
	first, err := git.NewWorkTree(p.Base(), p.Dir, p.Env).SayOnce(ctx, text)
	if err != nil || first { // a repository that cannot be written is no reason to refuse a commit
		fmt.Fprintln(p.Err, "note: "+term.Clean(text)+" (said once)")
	}
	return nil
}

// stateOf returns what a change is to the caller, in one word.
func stateOf(c coverage.Change) string {
	if c.Owner != "" {
		return c.Owner
	}
	return c.State
}

func (o changesOptions) fails(state string) bool {
	return state == coverage.Held || state == coverage.Uncovered && !o.held
}

// tellChanges prints the changes, and fails if one of them does.
func (p *program) tellChanges(done *coverage.Changes, o changesOptions) error {
	count := map[string]int{}
	failed := 0
	t := &term.Table{Heads: []string{"STATE", "PATH", "BY"}, Wide: 1}
	for _, c := range done.List {
		path, state := term.Clean(c.Path), stateOf(c)
		if c.Staged {
			path += " (staged)"
		}
		if count[state]++; o.fails(state) {
			failed++
		}
		if !o.quiet || o.fails(state) {
			t.Add(state, path, cameAbout(c))
		}
	}
	switch {
	case p.JSON:
		err := p.PrintJSON(map[string]any{"changes": acts.OrEmpty(done.List), "uncovered": count[coverage.Uncovered],
			"yours": count[coverage.Yours], "held": count[coverage.Held], "config_changed": done.ConfigChanged})
		if err != nil {
			return err
		}
	case o.quiet && failed == 0:
	case len(done.List) == 0:
		fmt.Fprintln(p.Out, "no changes")
	default:
		t.Print(p.Out, p.Painter(p.Out))
	}
	if done.ConfigChanged && !p.JSON {
		fmt.Fprintln(p.Err, "note: "+config.FileName+" changed; it sets what may be written")
	}
	if failed == 0 {
		return nil
	}
	if !p.JSON {
		p.adviseChanges(count[coverage.Held], failed-count[coverage.Held])
	}
	return &command.ExitError{Code: command.ExitViolation}
}

// adviseChanges says why the changes fail, and what to do.
func (p *program) adviseChanges(held, uncovered int) {
	var why, next []string
	if held > 0 {
		why = append(why, fmt.Sprintf("others hold %s", term.Counted(held, "changed path")))
		next = append(next, `lockkeeper commit -m "what changed" commits yours alone`)
	}
	if uncovered > 0 {
		why = append(why, "no lock covers "+term.Counted(uncovered, "change"))
		next = append(next, "lockkeeper lock exec --write PATH -- git commit, or write through lockkeeper gate")
	}
	p.Say(strings.Join(why, "; "))
	p.Advise(strings.Join(next, "; "))
}

// cameAbout describes who changed a path, and when.
func cameAbout(c coverage.Change) string {
	switch {
	case c.MovedFrom != "":
		return fmt.Sprintf("%s, grant %s, held since %s; moved from %s", term.Clean(c.Holder), lockkeeper.ShortID(c.GrantID), term.Stamp(*c.HeldFrom), term.Clean(c.MovedFrom))
	case c.Owner == coverage.Held:
		return fmt.Sprintf("%s, grant %s, held since %s", term.Clean(c.Holder), lockkeeper.ShortID(c.GrantID), term.Stamp(*c.HeldFrom))
	case c.State == coverage.Landed:
		return fmt.Sprintf("landing %d", c.Landing)
	case c.HeldUntil != nil:
		return fmt.Sprintf("%s, grant %s, held from %s to %s", term.Clean(c.Holder), lockkeeper.ShortID(c.GrantID), term.Stamp(*c.HeldFrom), term.Stamp(*c.HeldUntil))
	case c.State == coverage.Covered:
		return fmt.Sprintf("%s, grant %s, held since %s", term.Clean(c.Holder), lockkeeper.ShortID(c.GrantID), term.Stamp(*c.HeldFrom))
	case c.Owner == coverage.Yours:
		return "your session made it, without a lock"
	case c.Staged && c.Deleted:
		return "its deletion is staged, but the file exists"
	case c.Staged:
		return "staged content differs from the file, so it has no time of modification"
	}
	when := "modified " + term.Stamp(c.Modified)
	if c.Deleted {
		when = "deleted, not after " + term.Stamp(c.Modified)
	}
	if c.BeforeLog {
		when += "; the event log does not reach back that far"
	}
	return when
}
