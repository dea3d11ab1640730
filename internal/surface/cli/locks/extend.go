package locks

import (
	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
)

func (p *program) extendCommand() *cobra.Command {
	var t command.Targets
	cmd := &cobra.Command{
		Use:   "extend GRANT",
		Short: "Add paths to a grant, if its policy allows it",
		Long: `Add paths to a grant, all of them or none. It never waits. With policy session a
grant can add any free path, with policy dal only paths that sort after those it
holds. Grants of other policies cannot be extended.`,
		Example: `  lockkeeper lock extend "$grant" --write app/second.rb`,
		Args:    command.Exactly(1, "the id of a grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onGrant(cmd, args[0], func(a *project.Project, token string) (lockkeeper.Grant, error) {
				locks, err := t.Resolve(p.Program, a)
				if err != nil {
					return lockkeeper.Grant{}, err
				}
				if len(locks) == 0 {
					return lockkeeper.Grant{}, command.Usage(cmd, "needs a path to add")
				}
				return a.Locks.Extend(cmd.Context(), args[0], token, locks...)
			})
		},
	}
	t.Flags(cmd.Flags())
	return cmd
}
