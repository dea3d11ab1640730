package cli

import (
	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
)

func (p *program) extendCommand() *cobra.Command {
	var t targets
	cmd := &cobra.Command{
		Use:   "extend GRANT",
		Short: "Add paths to a grant, where its policy permits it",
		Long: `Add paths to a grant, all of them or none. It never waits. Policy session may
grow by whatever is free; policy dal only by paths after all it holds; the
others fix what they hold when it is granted.`,
		Example: `  lockkeeper lock extend "$grant" --write app/second.rb`,
		Args:    exactly(1, "the id of a grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onGrant(cmd, args[0], func(a *app.App, token string) (lockkeeper.Grant, error) {
				locks, err := t.resolve(p, a)
				if err != nil {
					return lockkeeper.Grant{}, err
				}
				if len(locks) == 0 {
					return lockkeeper.Grant{}, usage(cmd, "needs a path to add")
				}
				return a.Locks.Extend(cmd.Context(), args[0], token, locks...)
			})
		},
	}
	t.flags(cmd.Flags())
	return cmd
}
