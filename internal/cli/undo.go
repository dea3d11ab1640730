package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
)

func (p *program) undoCommand() *cobra.Command {
	var o ownLock
	cmd := &cobra.Command{
		Use:   "undo LANDING",
		Short: "Put back what a landing changed",
		Long: `Put back what a landing changed, as one unit and through the same gate: it takes
the locks on its paths, and is blocked, with exit code 3, while somebody else
holds one of them. With --grant it works under a grant of yours that holds them.
It refuses as a whole when any of the files has changed since. Originals are kept
for as long as gate.keep says. An undo is a landing, too, and can be undone. To a
program it prints the number of that landing alone; the rest is on standard error.`,
		Example: `  lockkeeper audit --kind landed
  lockkeeper undo 42
  lockkeeper undo 42 --grant "$grant"   # while it is held`,
		Args: exactly(1, "the number of a landing"),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := strconv.ParseUint(args[0], 10, 63)
			if err != nil || seq == 0 {
				return &lockkeeper.InputError{Field: "landing", Value: args[0], Reason: "not the number of a landing", Next: "lockkeeper audit --kind landed lists them"}
			}
			return p.with(cmd.Context(), func(a *app.App) error { return p.undo(cmd, a, seq, o) })
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

func (p *program) undo(cmd *cobra.Command, a *app.App, seq uint64, o ownLock) error {
	g, err := a.Gate()
	if err != nil {
		return err
	}
	l, err := g.Landing(cmd.Context(), seq)
	if err != nil {
		return err
	}
	paths := make([]string, len(l.Changes))
	for i, c := range l.Changes {
		paths[i] = c.Path
	}
	var back *lockkeeper.Landing
	err = p.under(cmd, a, fmt.Sprintf("undo landing %d", seq), o, paths, func(ctx context.Context, grant *lockkeeper.Grant) (err error) {
		back, err = g.Undo(ctx, grant, seq)
		return err
	})
	if err != nil {
		return err
	}
	if p.json { // what was decided is done by now
		return p.printJSON(struct {
			*lockkeeper.Landing
			State string `json:"state"`
		}{back, outcomeLanded})
	}
	to := file(p.Out)
	if !isTerminal(p.Out) { // a program gets the number alone
		fmt.Fprintln(p.Out, back.Seq)
		to = p.Err
	}
	for _, c := range back.Changes {
		what := "restored"
		switch {
		case !c.New.Exists():
			what = "deleted"
		case !c.Old.Exists():
			what = "brought back"
		}
		fmt.Fprintf(to, "%-12s  %s\n", what, clean(c.Path))
	}
	fmt.Fprintf(to, "landing %d takes landing %d of %s back\n", back.Seq, seq, clean(l.Holder))
	p.advise(undoStep(back.Seq, o.grant))
	return nil
}
