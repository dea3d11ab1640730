package landings

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/git"
	"lockkeeper/internal/git/coverage"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

type changesOptions struct{ staged, quiet, hook bool }

func (p *program) changesCommand() *cobra.Command {
	var o changesOptions
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "List changes that no lock covers",
		Long: `Compare the work tree with git's last commit, and classify each changed path:

  landed     the gate wrote it
  covered    a write lock on it, or on a directory above it, is held now or was held
             when the file was last modified
  uncovered  neither; then the exit code is 5

Staged content that differs from the file is classified separately: it has no time of
modification, so only a lock held now, or a landing, covers it. A git hook can run this
before each commit: see lockkeeper init --git-hook.

Who held what comes from the event log. Changes older than the log are uncovered. A
deletion has the time of its directory. Times of the log and of files are compared, so a
store on another machine needs the same clock.`,
		Example: `  lockkeeper gate changes
  lockkeeper gate changes --staged
  lockkeeper lock exec --write app/models/user.rb -- sed -i s/old/new/ app/models/user.rb`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.hook {
				o.staged, o.quiet = true, true
				if root, err := project.IsRoot(p.Settings()); err != nil || !root {
					return p.noRoot(err)
				}
			}
			return p.With(cmd.Context(), func(a *project.Project) error {
				ctx, stop := command.Interruptible(cmd.Context())
				defer stop()
				done, err := coverage.Find(ctx, a, git.NewWorkTree(a.Root.Dir(), p.Dir, p.Env), o.staged)
				if err != nil {
					return command.Interrupted(ctx, err)
				}
				return p.showChanges(done, o.quiet)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.staged, "staged", false, "only what is staged for the next commit, as it is staged")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "say nothing when nothing is uncovered")
	f.BoolVar(&o.hook, "hook", false, "as git asks before a commit: --staged --quiet, and nothing at all in a work tree that is no root")
	return cmd
}

// noRoot lets a commit pass whose work tree is no root, which a hook of another
// work tree of the repository has to do with as little as its locks.
func (p *program) noRoot(err error) error {
	if err == nil {
		fmt.Fprintf(p.Err, "note: %s is no root of locks, so nobody looks whether locks cover this commit\n", term.Clean(p.Base()))
	}
	return err
}

func (p *program) showChanges(done *coverage.Changes, quiet bool) error {
	uncovered := 0
	t := &term.Table{Heads: []string{"STATE", "PATH", "BY"}, Wide: 1}
	for _, c := range done.List {
		path := term.Clean(c.Path)
		if c.Staged {
			path += " (staged)"
		}
		if c.State == coverage.Uncovered {
			uncovered++
		}
		t.Add(c.State, path, cameAbout(c))
	}
	switch {
	case p.JSON:
		if err := p.PrintJSON(map[string]any{"changes": command.ListOf(done.List), "uncovered": uncovered, "config_changed": done.ConfigChanged}); err != nil {
			return err
		}
	case quiet && uncovered == 0:
	case len(done.List) == 0:
		fmt.Fprintln(p.Out, "nothing is changed")
	default:
		t.Print(p.Out, p.Painter(p.Out))
	}
	if done.ConfigChanged && !p.JSON {
		fmt.Fprintln(p.Err, "note: "+config.FileName+" changed: it decides what may be written")
	}
	if uncovered == 0 {
		return nil
	}
	if !p.JSON {
		p.Say(term.Counted(uncovered, "change") + " without a lock that covers " + term.Plural(uncovered, "it", "them") +
			"; next: lockkeeper lock exec --write PATH -- git commit, or write through lockkeeper gate")
	}
	return &command.ExitError{Code: command.ExitViolation}
}

// cameAbout says by whom and when a path was changed.
func cameAbout(c coverage.Change) string {
	switch {
	case c.State == coverage.Landed:
		return fmt.Sprintf("landing %d", c.Landing)
	case c.HeldUntil != nil:
		return fmt.Sprintf("%s, grant %s, held from %s to %s", term.Clean(c.Holder), c.GrantID, term.Stamp(*c.HeldFrom), term.Stamp(*c.HeldUntil))
	case c.State == coverage.Covered:
		return fmt.Sprintf("%s, grant %s, held since %s", term.Clean(c.Holder), c.GrantID, term.Stamp(*c.HeldFrom))
	case c.Staged && c.Deleted:
		return "its deletion is staged, and it is there"
	case c.Staged:
		return "staged as the file is not, so the time of the file says nothing"
	}
	when := "modified " + term.Stamp(c.Modified)
	if c.Deleted {
		when = "deleted, not after " + term.Stamp(c.Modified)
	}
	if c.BeforeLog {
		when += "; the event log does not reach back to who held it then"
	}
	return when
}
