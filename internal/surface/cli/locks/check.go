package locks

import (
	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
)

func (p *program) checkCommand() *cobra.Command {
	var t command.Targets
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether locks would be granted, without acquiring them",
		Long: `Check whether a request would be granted now, without acquiring anything. The exit
code is 0 if the paths are free. Otherwise it is 3, with every conflict.`,
		Example: `  lockkeeper lock check --write app/user.rb && echo free`,
		Args:    command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error {
				locks, err := t.Resolve(p.Program, a)
				if err != nil {
					return err
				}
				if len(locks) == 0 {
					return command.Usage(cmd, "needs a path to check")
				}
				found, err := a.Locks.CheckConflicts(cmd.Context(), locks)
				if err != nil {
					return err
				}
				if len(found) > 0 {
					return &lockkeeper.BlockedError{Conflicts: found}
				}
				return p.Answer(map[string]any{"free": true, "conflicts": []lockkeeper.ConflictInfo{}}, "free")
			})
		},
	}
	t.Flags(cmd.Flags())
	return cmd
}
