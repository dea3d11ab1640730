package landings

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) undoCommand() *cobra.Command {
	var o command.OwnLock
	var flow string
	cmd := &cobra.Command{
		Use:   "undo LANDING | UNIT/BATCH",
		Short: "Undo a landing, or a batch of a run",
		Long: `Undo a landing as a whole, through the gate. It acquires the locks on its paths and
fails with exit code 3 while another holder has one of them. With --grant it uses your
grant. It refuses if any of the files has changed since. The originals are kept for the
time in gate.keep. An undo is a landing too, and can be undone. In a pipe it prints only
the number of the new landing; the rest goes to standard error.

For a batch it undoes all landings of the batch, the last first. A git commit stays:
undo prints how to commit the undo.`,
		Example: `  lockkeeper audit --kind landed
  lockkeeper undo 42
  lockkeeper undo 42 --grant "$grant"   # while it is held
  lockkeeper undo blog/posts/b2`,
		Args: command.Exactly(1, "the number of a landing, or the name of a batch"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.Contains(args[0], "/") {
				return p.With(cmd.Context(), func(a *project.Project) error { return p.undoBatch(cmd, a, flow, args[0], o) })
			}
			seq, err := strconv.ParseUint(args[0], 10, 63)
			if err != nil || seq == 0 {
				return &lockkeeper.InputError{Field: "landing", Value: args[0], Reason: "not the number of a landing, nor the name of a batch such as blog/posts/b2", Next: "lockkeeper audit --kind landed lists landings"}
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.undo(cmd, a, seq, o) })
		},
	}
	o.Flags(cmd.Flags())
	cmd.Flags().StringVar(&flow, "flow", "", "the `flow` of the batch (default: the one under way)")
	return cmd
}

func (p *program) undo(cmd *cobra.Command, a *project.Project, seq uint64, o command.OwnLock) error {
	undone, err := acts.UndoLanding(cmd.Context(), a, seq, p.Actor(), p.holding(cmd, a, o))
	if err != nil {
		return err
	}
	back := undone.Landings[0]
	if p.JSON { // what was decided is done by now
		return p.PrintJSON(struct {
			*lockkeeper.Landing
			State string            `json:"state"`
			Batch *acts.UndoneBatch `json:"batch,omitempty"`
		}{back, outcomeLanded, undone.Batch})
	}
	to := term.File(p.Out)
	if !term.IsTerminal(p.Out) { // a program gets the number alone
		fmt.Fprintln(p.Out, back.Seq)
		to = p.Err
	}
	showUndone(to, back)
	fmt.Fprintf(to, "landing %d undoes landing %d of %s\n", back.Seq, seq, term.Clean(undone.Of.Holder))
	if b := undone.Batch; b != nil {
		fmt.Fprintln(to, aboutBatch(b))
	}
	p.Advise(command.UndoStep(back.Seq, o.Grant))
	return nil
}

// aboutBatch says how the batch is whose landing was taken back, or came back.
func aboutBatch(b *acts.UndoneBatch) string {
	name := term.Clean(b.Name())
	switch {
	case b.Undone:
		return "batch " + name + " is undone with it"
	case b.Partly:
		return fmt.Sprintf("%s of batch %s still %s: lockkeeper undo %s undoes all of it", term.Counted(len(b.Left), "landing"), name, term.Plural(len(b.Left), "stands", "stand"), name)
	}
	return "batch " + name + " is in the tree again"
}

// showUndone lists what an undo did.
func showUndone(to term.File, back *lockkeeper.Landing) {
	for _, c := range back.Changes {
		what := "restored"
		switch {
		case !c.New.Exists():
			what = "deleted"
		case !c.Old.Exists():
			what = "brought back"
		}
		fmt.Fprintf(to, "%-12s  %s\n", what, term.Clean(c.Path))
	}
}
