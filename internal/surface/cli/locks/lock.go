package locks

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/lock"
)

// program is one call of the program. The commands of this package are its methods.
type program struct{ *command.Program }

// Commands returns the commands of this package.
func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.lockCommand(), p.deferCommand()}
}

// ExecUnder acquires the request, runs a command under the grant, and releases it.
func ExecUnder(ctx context.Context, p *command.Program, a *project.Project, req lockkeeper.Request, wait time.Duration, argv []string) error {
	return (&program{p}).execUnder(ctx, a, req, wait, argv)
}

// RunUnder runs a command under a grant that this process holds, and releases it. A
// signal that ended waiting before the command started ends both.
func RunUnder(ctx, waiting context.Context, p *command.Program, a *project.Project, g *lock.Grant, argv []string) error {
	return (&program{p}).runUnder(ctx, waiting, a, g, argv)
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
