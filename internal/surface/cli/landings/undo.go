package landings

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/encoding/shellword"
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
the number of the new landing; the rest goes to standard error. An agent undoes only
what it wrote itself.

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
	cmd.Flags().StringVar(&flow, "flow", "", "the `flow` of the batch (default: the current one)")
	return cmd
}

func (p *program) undo(cmd *cobra.Command, a *project.Project, seq uint64, o command.OwnLock) error {
	undone, err := acts.UndoLanding(cmd.Context(), a, seq, p.Changer(a), p.holding(cmd, a, o))
	if err != nil {
		return err
	}
	back := undone.Landings[0]
	if p.JSON { // the landing is complete by now
		return p.PrintJSON(struct {
			*lockkeeper.Landing
			State string            `json:"state"`
			Batch *acts.UndoneBatch `json:"batch,omitempty"`
		}{back, outcomeLanded, undone.Batch})
	}
	to := term.File(p.Out)
	if !term.IsTerminal(p.Out) { // a program gets only the number
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

// aboutBatch describes the batch of a landing that was undone or redone.
func aboutBatch(b *acts.UndoneBatch) string {
	name := term.Clean(b.Name())
	switch {
	case b.Undone:
		return "batch " + name + " is undone with it"
	case b.Partly:
		return fmt.Sprintf("%s of batch %s %s in the tree: lockkeeper undo %s undoes all of it", term.Counted(len(b.Left), "landing"), name, term.Plural(len(b.Left), "is", "are"), name)
	}
	return "batch " + name + " is in the tree again"
}

func showUndone(to term.File, back *lockkeeper.Landing) {
	for _, c := range back.Changes {
		what := "restored"
		switch {
		case !c.New.Exists():
			what = "deleted"
		case !c.Old.Exists():
			what = "recreated"
		}
		fmt.Fprintf(to, "%-12s  %s\n", what, term.Clean(c.Path))
	}
}

type undoneBatch struct {
	Unit     string                `json:"unit"`
	Batch    string                `json:"batch"`
	Landings []*lockkeeper.Landing `json:"landings"` // the landings that undid the batch
	Commit   string                `json:"commit,omitempty"`
	Next     string                `json:"next,omitempty"`
}

func (p *program) undoBatch(cmd *cobra.Command, a *project.Project, flow, name string, o command.OwnLock) error {
	decider, err := acts.Open(cmd.Context(), a, flow, p.Person())
	if err != nil {
		return err
	}
	if err := p.NoAgent("undo"); err != nil {
		return err
	}
	unit, batch, err := command.SplitPart(name)
	if err != nil {
		return err
	}
	if slices.Contains(decider.Units, name) {
		return &lockkeeper.InputError{Field: "batch", Value: name, Reason: "it is a unit; batches are undone one by one", Next: decider.Command("decide", "show", "plan", name)}
	}
	undone, err := decider.UndoBatch(cmd.Context(), unit, batch, p.holding(cmd, decider.App, o))
	if err != nil {
		return err
	}
	b := undone.Batch
	out := undoneBatch{Unit: b.Unit, Batch: b.ID, Landings: undone.Landings, Commit: b.Commit, Next: afterUndo(decider, undone)}
	if p.JSON {
		return p.PrintJSON(out)
	}
	to := term.File(p.Out)
	if !term.IsTerminal(p.Out) { // a program gets only the numbers
		for _, back := range out.Landings {
			fmt.Fprintln(p.Out, back.Seq)
		}
		to = p.Err
	}
	for _, back := range out.Landings {
		showUndone(to, back)
	}
	fmt.Fprintf(to, "batch %s is undone, by %s\n", term.Clean(b.Name()), term.Counted(len(out.Landings), "landing"))
	p.Advise(out.Next)
	return nil
}

// afterUndo returns the next step after the undo of a batch.
func afterUndo(decider *acts.Decider, undone *acts.Undone) string {
	b := undone.Batch
	if b.Commit != "" {
		return shellword.Join(append([]string{"git", "commit", "-m", "Undo " + b.Name() + " (" + b.Commit + ")", "--"}, undone.Paths...)) + ", because commit " + b.Commit + " still has the change"
	}
	return decider.RedoCommand(b.Name()) + ", to redo it"
}

// holding returns how a command acquires the locks for its own short work.
func (p *program) holding(cmd *cobra.Command, a *project.Project, o command.OwnLock) acts.Hold {
	return func(_ context.Context, reason string, paths []string, work func(context.Context, *lockkeeper.Grant) error) error {
		return p.Under(cmd, a, reason, o, paths, work)
	}
}
