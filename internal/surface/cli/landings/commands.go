package landings

import (
	"github.com/spf13/cobra"

	"lockkeeper/internal/surface/cli/command"
)

type program struct{ *command.Program }

func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.gateCommand(), p.commitCommand(), p.undoCommand(), p.rescueCommand()}
}
