package cli

import "github.com/spf13/cobra"

func (p *program) lockCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Take, keep and give back locks",
		Long: `Take, keep and give back locks. A request gets all of its targets or none, and
is never in the way of anybody while it waits.`,
		Example: `  lockkeeper lock acquire --write app/user.rb --read app/
  lockkeeper lock exec --write app/user.rb -- make fmt
  lockkeeper lock check --write app/user.rb`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.acquireCommand(), p.releaseCommand(), p.renewCommand(), p.upgradeCommand(), p.extendCommand(),
		p.checkCommand(), p.execCommand(), p.forceCommand(), p.clearCommand())
	return cmd
}
