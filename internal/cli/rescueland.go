package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/rescue"
)

type rescueLandOptions struct {
	ontoCurrent bool
	wait        duration
}

func (p *program) rescueLandCommand() *cobra.Command {
	var o rescueLandOptions
	cmd := &cobra.Command{
		Use:   "land ID",
		Short: "Write it to its place after all",
		Long: `Write something that is kept to where it was to go, through the gate: it takes the
lock on the path, and is blocked, with exit code 3, while somebody else holds
it. It is refused when the file is not what it was when the content was kept;
with --onto-current it replaces whatever is there. What has landed is dropped. A
directory that was moved aside is not landed, but moved back by hand.`,
		Example: `  lockkeeper rescue land 20260131T090000.123-1b4e28ba
  lockkeeper rescue land --onto-current 20260131T090000.123-1b4e28ba`,
		Args: exactly(1, "the id of something that is kept"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd.Context(), func(a *app.App) error { return p.rescueLand(cmd, a, args[0], o) })
		},
	}
	cmd.Flags().BoolVar(&o.ontoCurrent, "onto-current", false, "replace whatever is there now")
	cmd.Flags().Var(&o.wait, "wait", "how long to wait in line when blocked (default: not at all)")
	return cmd
}

func (p *program) rescueLand(cmd *cobra.Command, a *app.App, id string, o rescueLandOptions) error {
	g, err := a.Gate()
	if err != nil {
		return err
	}
	e, err := g.Rescue().Get(id)
	if err != nil {
		return err
	}
	switch e.Kind {
	case rescue.Damaged:
		return &lockkeeper.InputError{Field: "rescue id", Value: id, Reason: e.Reason, Next: "lockkeeper rescue show " + id}
	case rescue.Whole:
		return &lockkeeper.InputError{Field: "rescue id", Value: id, Reason: "it is no file but a directory, or something odd, that was moved aside as it is, and the gate lands files only",
			Next: "lockkeeper rescue show " + id + " says where it is: move it back by hand, under a lock on " + e.Path}
	}
	var l *lockkeeper.Landing
	err = p.under(cmd, a, "land rescued "+id, time.Duration(o.wait), []string{e.Path}, func(ctx context.Context, grant *lockkeeper.Grant) (err error) {
		l, err = a.LandRescued(ctx, grant, e, o.ontoCurrent)
		return err
	})
	for _, v := range violations(err) {
		v.Next = "it stays kept: lockkeeper rescue show " + id
		if v.Check == "base" {
			v.Next = "lockkeeper rescue show " + id + ", then lockkeeper rescue land --onto-current " + id
		}
	}
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
	}
	return err
}
