package landings

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/rescue"
)

type rescueLandOptions struct {
	command.OwnLock
	ontoCurrent bool
}

func (p *program) rescueLandCommand() *cobra.Command {
	var o rescueLandOptions
	cmd := &cobra.Command{
		Use:     "land ID",
		Aliases: []string{"restore"},
		Short:   "Land a kept change",
		Long: `Land a kept change through the gate. It acquires the lock on the path and fails with exit
code 3 while another holder has it. With --grant it uses your grant. It is refused if the
file has changed since the content was kept; with --onto-current it replaces the file
anyway. A change that has landed is no longer kept. A directory that was moved aside
cannot be landed; move it back by hand.

"rescue restore" is the same command. An uncommitted file that a command of a session
removed or overwrote is restored to its place, also outside of gate.allowed_write_paths.
The file that --onto-current replaces there is kept in turn.`,
		Example: `  lockkeeper rescue land 20260131T090000.123-1b4e28ba
  lockkeeper rescue restore 20260131T090000.123-1b4e28ba
  lockkeeper rescue land --onto-current 20260131T090000.123-1b4e28ba`,
		Args: command.Exactly(1, "the id of something that is kept"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error { return p.rescueLand(cmd, a, args[0], o) })
		},
	}
	cmd.Flags().BoolVar(&o.ontoCurrent, "onto-current", false, "replace whatever is there now")
	o.Flags(cmd.Flags())
	return cmd
}

func (p *program) rescueLand(cmd *cobra.Command, a *project.Project, id string, o rescueLandOptions) error {
	e, l, err := acts.LandRescued(cmd.Context(), a, id, o.ontoCurrent, p.holding(cmd, a, o.OwnLock))
	if err != nil {
		return err
	}
	seq := uint64(0)
	if l != nil {
		seq = l.Seq
	}
	switch {
	case p.JSON:
		return p.PrintJSON(map[string]any{"landing": seq, "path": e.Path, "dropped": id})
	case l == nil:
		_, err = fmt.Fprintf(p.Out, "%s is so already; dropped %s\n", term.Clean(e.Path), id)
	default:
		_, err = fmt.Fprintf(p.Out, "landing %d: %s; dropped %s\n", seq, term.Clean(e.Path), id)
		if e.Kind == rescue.Uncommitted {
			if o.ontoCurrent {
				p.Advise("lockkeeper rescue list shows what it replaced")
			}
			return err
		}
		p.Advise(command.UndoStep(seq, o.Grant))
	}
	return err
}
