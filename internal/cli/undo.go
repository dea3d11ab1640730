package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/acts"
	"lockkeeper/internal/app"
)

func (p *program) undoCommand() *cobra.Command {
	var o ownLock
	d := &decider{program: p}
	cmd := &cobra.Command{
		Use:   "undo LANDING | UNIT/BATCH",
		Short: "Put back what a landing, or a batch of a run, changed",
		Long: `Put back what a landing changed, as one unit and through the same gate: it takes
the locks on its paths, and is blocked, with exit code 3, while somebody else
holds one of them. With --grant it works under a grant of yours that holds them.
It refuses as a whole when any of the files has changed since. Originals are kept
for as long as gate.keep says. An undo is a landing, too, and can be undone. To a
program it prints the number of that landing alone; the rest is on standard error.

Of a batch it puts back what all its landings changed, the last first, and nothing
else. A commit of git stays: it says how to commit the undo.`,
		Example: `  lockkeeper audit --kind landed
  lockkeeper undo 42
  lockkeeper undo 42 --grant "$grant"   # while it is held
  lockkeeper undo blog/posts/b2`,
		Args: exactly(1, "the number of a landing, or the name of a batch"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.Contains(args[0], "/") {
				return d.deciding(cmd, func(context.Context) error { return d.undoBatch(cmd, args[0], o) })
			}
			seq, err := strconv.ParseUint(args[0], 10, 63)
			if err != nil || seq == 0 {
				return &lockkeeper.InputError{Field: "landing", Value: args[0], Reason: "not the number of a landing, nor the name of a batch such as blog/posts/b2", Next: "lockkeeper audit --kind landed lists landings"}
			}
			return p.with(cmd.Context(), func(a *app.App) error { return p.undo(cmd, a, seq, o) })
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().StringVar(&d.name, "flow", "", "the `flow` of the batch (default: the one under way)")
	return cmd
}

func (p *program) undo(cmd *cobra.Command, a *app.App, seq uint64, o ownLock) error {
	undone, err := acts.UndoLanding(cmd.Context(), a, seq, p.actor(), p.holding(cmd, a, o))
	if err != nil {
		return err
	}
	back := undone.Landings[0]
	if p.json { // what was decided is done by now
		return p.printJSON(struct {
			*lockkeeper.Landing
			State string            `json:"state"`
			Batch *acts.UndoneBatch `json:"batch,omitempty"`
		}{back, outcomeLanded, undone.Batch})
	}
	to := file(p.Out)
	if !isTerminal(p.Out) { // a program gets the number alone
		fmt.Fprintln(p.Out, back.Seq)
		to = p.Err
	}
	showUndone(to, back)
	fmt.Fprintf(to, "landing %d takes landing %d of %s back\n", back.Seq, seq, clean(undone.Of.Holder))
	if b := undone.Batch; b != nil {
		fmt.Fprintln(to, aboutBatch(b))
	}
	p.advise(undoStep(back.Seq, o.grant))
	return nil
}

// aboutBatch says how the batch is whose landing was taken back, or came back.
func aboutBatch(b *acts.UndoneBatch) string {
	name := clean(b.Name())
	switch {
	case b.Undone:
		return "batch " + name + " is undone with it"
	case b.Partly:
		return fmt.Sprintf("%s of batch %s still %s: lockkeeper undo %s takes all of it back", counted(len(b.Left), "landing"), name, plural(len(b.Left), "stands", "stand"), name)
	}
	return "batch " + name + " is in the tree again"
}

// showUndone lists what an undo did.
func showUndone(to file, back *lockkeeper.Landing) {
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
}
