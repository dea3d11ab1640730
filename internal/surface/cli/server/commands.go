package server

import (
	"github.com/spf13/cobra"

	"lockkeeper/internal/surface/cli/command"
)

// program is one call of the program. The commands of this package are its methods.
type program struct{ *command.Program }

// Commands returns the commands of this package.
func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.serveCommand(), p.loginCommand(), p.tokenCommand()}
}
