package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/acts"
	"lockkeeper/internal/app"
	"lockkeeper/rescue"
)

type rescueLandOptions struct {
	ownLock
	ontoCurrent bool
}

func (p *program) rescueLandCommand() *cobra.Command {
	var o rescueLandOptions
	cmd := &cobra.Command{
		Use:     "land ID",
		Aliases: []string{"restore"},
		Short:   "Write it to its place after all",
		Long: `Write something that is kept to where it was to go, through the gate: it takes the
lock on the path, and is blocked, with exit code 3, while somebody else holds
it. With --grant it works under a grant of yours that holds it. It is refused when
the file is not what it was when the content was kept; with --onto-current it
replaces whatever is there. What has landed is dropped. A directory that was moved
aside is not landed, but moved back by hand.

"rescue restore" is the same command. An uncommitted file that a command of a
session removed or overwrote is restored wherever it was, also outside of
gate.allowed_write_paths. What --onto-current replaces there is kept in its turn.`,
		Example: `  lockkeeper rescue land 20260131T090000.123-1b4e28ba
  lockkeeper rescue restore 20260131T090000.123-1b4e28ba
  lockkeeper rescue land --onto-current 20260131T090000.123-1b4e28ba`,
		Args: exactly(1, "the id of something that is kept"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd.Context(), func(a *app.App) error { return p.rescueLand(cmd, a, args[0], o) })
		},
	}
	cmd.Flags().BoolVar(&o.ontoCurrent, "onto-current", false, "replace whatever is there now")
	o.flags(cmd.Flags())
	return cmd
}

func (p *program) rescueLand(cmd *cobra.Command, a *app.App, id string, o rescueLandOptions) error {
	e, l, err := acts.LandRescued(cmd.Context(), a, id, o.ontoCurrent, p.holding(cmd, a, o.ownLock))
	if err != nil {
		return err
	}
	seq := uint64(0)
	if l != nil {
		seq = l.Seq
	}
	switch {
	case p.json:
		return p.printJSON(map[string]any{"landing": seq, "path": e.Path, "dropped": id})
	case l == nil:
		_, err = fmt.Fprintf(p.Out, "%s is so already; dropped %s\n", clean(e.Path), id)
	default:
		_, err = fmt.Fprintf(p.Out, "landing %d: %s; dropped %s\n", seq, clean(e.Path), id)
		if e.Kind == rescue.Uncommitted {
			if o.ontoCurrent {
				p.advise("lockkeeper rescue list shows what it replaced")
			}
			return err
		}
		p.advise(undoStep(seq, o.grant))
	}
	return err
}
