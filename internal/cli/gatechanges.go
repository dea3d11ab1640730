package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/app"
	"lockkeeper/internal/config"
)

type changesOptions struct{ staged, quiet, hook bool }

func (p *program) changesCommand() *cobra.Command {
	var o changesOptions
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "What changed without a lock that covers it",
		Long: `Compare the work tree with git's last commit, and say of each changed path how
that came about: landed, it is what the gate wrote; covered, somebody holds a
write lock on it, or on a directory above it, or held one when the file was last
modified; uncovered, neither. What is staged with another content than the file
has is a change of its own: it is landed or not, and no lock of the past covers
it, for it has no time of modification. Exit code 5 when something is uncovered.
As a pre-commit hook it keeps such changes out of commits: see lockkeeper init
--git-hook.

Who held what is read from the event log, as far back as the earliest change, and
no further than 50,000 events: what was changed before that is uncovered. A
deletion has the time of the directory it was made in. Times of the log and of
files are compared, so a store on another machine needs the same clock.`,
		Example: `  lockkeeper gate changes
  lockkeeper gate changes --staged
  lockkeeper lock exec --write app/models/user.rb -- sed -i s/old/new/ app/models/user.rb`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.hook {
				o.staged, o.quiet = true, true
				if root, err := app.IsRoot(p.settings()); err != nil || !root {
					return p.noRoot(err)
				}
			}
			return p.with(cmd.Context(), func(a *app.App) error {
				ctx, stop := interruptible(cmd.Context())
				defer stop()
				done, err := a.Changes(ctx, app.NewGit(a.Root.Dir(), p.Dir, p.Env), o.staged)
				if err != nil {
					return interrupted(ctx, err)
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
		fmt.Fprintf(p.Err, "note: %s is no root of locks, so nobody looks whether locks cover this commit\n", clean(p.base()))
	}
	return err
}

func (p *program) showChanges(done *app.WorkChanges, quiet bool) error {
	uncovered := 0
	t := &table{heads: []string{"STATE", "PATH", "BY"}, wide: 1}
	for _, c := range done.List {
		path := clean(c.Path)
		if c.Staged {
			path += " (staged)"
		}
		if c.State == app.ChangeUncovered {
			uncovered++
		}
		t.add(c.State, path, cameAbout(c))
	}
	switch {
	case p.json:
		if err := p.printJSON(map[string]any{"changes": listOf(done.List), "uncovered": uncovered, "config_changed": done.ConfigChanged}); err != nil {
			return err
		}
	case quiet && uncovered == 0:
	case len(done.List) == 0:
		fmt.Fprintln(p.Out, "nothing is changed")
	default:
		t.print(p.Out, p.painter(p.Out))
	}
	if done.ConfigChanged && !p.json {
		fmt.Fprintln(p.Err, "note: "+config.FileName+" changed: it decides what may be written")
	}
	if uncovered == 0 {
		return nil
	}
	if !p.json {
		p.say(counted(uncovered, "change") + " without a lock that covers " + plural(uncovered, "it", "them") +
			"; next: lockkeeper lock exec --write PATH -- git commit, or write through lockkeeper gate")
	}
	return &codedError{exit: exitViolation}
}

// cameAbout says by whom and when a path was changed.
func cameAbout(c app.WorkChange) string {
	switch {
	case c.State == app.ChangeLanded:
		return fmt.Sprintf("landing %d", c.Landing)
	case c.HeldUntil != nil:
		return fmt.Sprintf("%s, grant %s, held from %s to %s", clean(c.Holder), c.GrantID, stamp(*c.HeldFrom), stamp(*c.HeldUntil))
	case c.State == app.ChangeCovered:
		return fmt.Sprintf("%s, grant %s, held since %s", clean(c.Holder), c.GrantID, stamp(*c.HeldFrom))
	case c.Staged && c.Deleted:
		return "its deletion is staged, and it is there"
	case c.Staged:
		return "staged as the file is not, so the time of the file says nothing"
	}
	when := "modified " + stamp(c.Modified)
	if c.Deleted {
		when = "deleted, not after " + stamp(c.Modified)
	}
	if c.BeforeLog {
		when += "; the event log does not reach back to who held it then"
	}
	return when
}
