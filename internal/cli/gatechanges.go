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
write lock on it, or on a directory above it; uncovered, neither. Exit code 5
when something is uncovered. As a pre-commit hook it keeps such changes out of
commits: see lockkeeper init --git-hook.`,
		Example: `  lockkeeper gate changes
  lockkeeper gate changes --staged
  lockkeeper lock exec --write app/models/user.rb -- git commit app/models/user.rb`,
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
		by := ""
		switch c.State {
		case app.ChangeUncovered:
			uncovered++
		case app.ChangeLanded:
			by = fmt.Sprintf("landing %d", c.Landing)
		case app.ChangeCovered:
			by = clean(c.Holder) + ", grant " + c.GrantID
		}
		t.add(c.State, clean(c.Path), by)
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
