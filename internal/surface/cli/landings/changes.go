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
	f.BoolVar(&o.staged, "staged", false, "check only what is staged for the next commit")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing if every change is covered")
	f.BoolVar(&o.hook, "hook", false, "run as git's pre-commit hook: --staged --quiet, and do nothing in a work tree without Lockkeeper")
	return cmd
}

// noRoot lets a commit pass in a work tree that is not a root. Git runs the hook in all work
// trees of the repository.
func (p *program) noRoot(err error) error {
	if err == nil {
		fmt.Fprintf(p.Err, "note: %s is not set up for Lockkeeper, so locks are not checked for this commit\n", term.Clean(p.Base()))
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
		fmt.Fprintln(p.Out, "no changes")
	default:
		t.Print(p.Out, p.Painter(p.Out))
	}
	if done.ConfigChanged && !p.JSON {
		fmt.Fprintln(p.Err, "note: "+config.FileName+" changed; it sets what may be written")
	}
	if uncovered == 0 {
		return nil
	}
	if !p.JSON {
		p.Say("no lock covers " + term.Counted(uncovered, "change"))
		p.Advise("lockkeeper lock exec --write PATH -- git commit, or write through lockkeeper gate")
	}
	return &command.ExitError{Code: command.ExitViolation}
}

// cameAbout describes who changed a path, and when.
func cameAbout(c coverage.Change) string {
	switch {
	case c.State == coverage.Landed:
		return fmt.Sprintf("landing %d", c.Landing)
	case c.HeldUntil != nil:
		return fmt.Sprintf("%s, grant %s, held from %s to %s", term.Clean(c.Holder), c.GrantID, term.Stamp(*c.HeldFrom), term.Stamp(*c.HeldUntil))
	case c.State == coverage.Covered:
		return fmt.Sprintf("%s, grant %s, held since %s", term.Clean(c.Holder), c.GrantID, term.Stamp(*c.HeldFrom))
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
