package locks

import (
	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
)

func (p *program) upgradeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "upgrade GRANT PATH…",
		Short: "Upgrade locks to write locks",
		Long: `Upgrade the upgradeable locks of a grant to write locks, all the paths or none,
without releasing them in between. It never waits: if another holder reads there,
it is blocked and the locks stay upgradeable.`,
		Example: `  grant=$(lockkeeper lock acquire --policy dal --upgradeable data/index)
  lockkeeper lock upgrade "$grant" data/index`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return command.Usage(cmd, "needs the id of a grant and one path or more")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onGrant(cmd, args[0], func(a *project.Project, token string) (lockkeeper.Grant, error) {
				paths := make([]string, len(args)-1)
				for i, path := range args[1:] {
					l, err := a.Resolve(lockkeeper.Write, path)
					if err != nil {
						return lockkeeper.Grant{}, err
					}
					paths[i] = l.Path
				}
				return a.Locks.Upgrade(cmd.Context(), args[0], token, paths...)
			})
		},
	}
}
