package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
)

func (p *program) checkCommand() *cobra.Command {
	var t targets
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Look whether locks would be granted, and take none",
		Long: `Look whether a request would be granted now, without taking anything: exit code
0 when it is free, 3 with every conflict when it is not.`,
		Example: `  lockkeeper lock check --write app/user.rb && echo free`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd.Context(), func(a *app.App) error {
				locks, err := t.resolve(p, a)
				if err != nil {
					return err
				}
				if len(locks) == 0 {
					return usage(cmd, "needs a path to look at")
				}
				found, err := a.Locks.CheckConflicts(cmd.Context(), locks)
				if err != nil {
					return err
				}
				if len(found) > 0 {
					return &lockkeeper.BlockedError{Conflicts: found}
				}
				if p.json {
					return p.printJSON(map[string]any{"free": true, "conflicts": []lockkeeper.ConflictInfo{}})
				}
				_, err = fmt.Fprintln(p.Out, "free")
				return err
			})
		},
	}
	t.flags(cmd.Flags())
	return cmd
}
