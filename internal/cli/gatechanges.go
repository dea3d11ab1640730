package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/app"
)

func (p *program) changesCommand() *cobra.Command {
	var staged bool
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "What changed without a lock that covers it",
		Long: `Compare the work tree with git's last commit, and say of each changed path how
that came about: landed, it is what the gate wrote; covered, somebody holds a
write lock on it, or on a directory above it, or held one when the file was last
modified; uncovered, neither. Exit code 5 when something is uncovered. As a
pre-commit hook it keeps such changes out of commits: see lockkeeper init
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
			return p.with(cmd.Context(), func(a *app.App) error {
				ctx, stop := interruptible(cmd.Context())
				defer stop()
				list, err := a.Changes(ctx, app.NewGit(a.Root.Dir(), p.Dir, p.Env), staged)
				if err != nil {
					return interrupted(ctx, err)
				}
				return p.showChanges(list)
			})
		},
	}
	cmd.Flags().BoolVar(&staged, "staged", false, "only what is staged for the next commit")
	return cmd
}

func (p *program) showChanges(list []app.WorkChange) error {
	uncovered := 0
	t := &table{heads: []string{"STATE", "PATH", "BY"}, wide: 1}
	for _, c := range list {
		if c.State == app.ChangeUncovered {
			uncovered++
		}
		t.add(c.State, clean(c.Path), cameAbout(c))
	}
	switch {
	case p.json:
		if err := p.printJSON(map[string]any{"changes": list, "uncovered": uncovered}); err != nil {
			return err
		}
	case len(list) == 0:
		fmt.Fprintln(p.Out, "nothing is changed")
	default:
		t.print(p.Out, p.painter(p.Out))
	}
	if uncovered == 0 {
		return nil
	}
	if !p.json {
		p.say(counted(uncovered, "change") + " without a lock that covers it; next: lockkeeper lock exec --write PATH -- git commit, or write through lockkeeper gate")
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
	case c.BeforeLog:
		return fmt.Sprintf("modified %s; the event log does not reach back to who held it then", stamp(c.Modified))
	}
	return "modified " + stamp(c.Modified)
}
