package locks

import (
	"github.com/spf13/cobra"

	"lockkeeper/internal/surface/cli/command"
)

type program struct{ *command.Program }

func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.lockCommand(), p.deferCommand()}
}

func (p *program) lockCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "lock",
		Short: "Acquire, keep and release locks",
		Long: `Acquire, keep and release locks. A request gets all of its paths or none. While it
waits it holds nothing.`,
		Example: `  lockkeeper lock acquire --write app/user.rb --read app/
  lockkeeper lock exec --write app/user.rb -- make fmt
  lockkeeper lock check --write app/user.rb`,
	}, p.acquireCommand(), p.releaseCommand(), p.renewCommand(), p.upgradeCommand(), p.extendCommand(),
		p.checkCommand(), p.execCommand(), p.forceCommand(), p.clearCommand())
}
