package cli

import (
	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
)

func (p *program) upgradeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "upgrade GRANT PATH…",
		Short: "Turn upgradeable locks into write locks",
		Long: `Turn upgradeable locks of a grant into write locks, all the paths or none,
without a moment in which they are not held. It never waits: when somebody else
reads there, it is blocked and the hold stays as it was.`,
		Example: `  grant=$(lockkeeper lock acquire --policy dal --upgradeable data/index)
  lockkeeper lock upgrade "$grant" data/index`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(cmd, "needs the id of a grant and one path or more")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onGrant(cmd, args[0], func(a *app.App, token string) (lockkeeper.Grant, error) {
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
