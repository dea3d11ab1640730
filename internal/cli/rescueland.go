package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper"
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
		Use:   "land ID",
		Short: "Write it to its place after all",
		Long: `Write something that is kept to where it was to go, through the gate: it takes the
lock on the path, and is blocked, with exit code 3, while somebody else holds
it. With --grant it works under a grant of yours that holds it. It is refused when
the file is not what it was when the content was kept; with --onto-current it
replaces whatever is there. What has landed is dropped. A directory that was moved
aside is not landed, but moved back by hand.`,
		Example: `  lockkeeper rescue land 20260131T090000.123-1b4e28ba
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
	e, err := a.Shelf().Get(id)
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
	err = p.under(cmd, a, "land rescued "+id, o.ownLock, []string{e.Path}, func(ctx context.Context, grant *lockkeeper.Grant) (err error) {
		l, err = a.LandRescued(ctx, grant, e, o.ontoCurrent)
		return err
	})
	if err != nil {
		staysKept(err, id)
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
		p.advise(undoStep(seq, o.grant))
	}
	return err
}

// staysKept says of refusals that what is kept is so still, under the same id.
func staysKept(err error, id string) {
	for _, part := range app.Parts(err) {
		var v *lockkeeper.LockViolationError
		var input *lockkeeper.InputError
		next := "it stays kept: lockkeeper rescue show " + id
		switch {
		case errors.As(part, &v) && v.Check == "base":
			v.Next = "lockkeeper rescue show " + id + ", then lockkeeper rescue land --onto-current " + id
		case errors.As(part, &v):
			v.Next = next
		case errors.As(part, &input) && input.Field == "path":
			input.Next = next
		}
	}
}
