package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/acts"
	"lockkeeper/internal/app"
)

// undoneBatch is what came of it, as JSON.
type undoneBatch struct {
	Unit     string                `json:"unit"`
	Batch    string                `json:"batch"`
	Landings []*lockkeeper.Landing `json:"landings"` // those that took it back
	Commit   string                `json:"commit,omitempty"`
	Next     string                `json:"next,omitempty"`
}

// undoBatch puts back what a batch changed.
func (d *decider) undoBatch(cmd *cobra.Command, name string, o ownLock) error {
	unit, batch, err := part(name)
	if err != nil {
		return err
	}
	if slices.Contains(d.desk.Units, name) {
		return &lockkeeper.InputError{Field: "batch", Value: name, Reason: "it is a unit, and batches are undone one by one", Next: d.desk.Command("decide", "show", "plan", name)}
	}
	undone, err := d.desk.UndoBatch(cmd.Context(), unit, batch, d.holding(cmd, d.desk.App, o))
	if err != nil {
		return err
	}
	b := undone.Batch
	out := undoneBatch{Unit: b.Unit, Batch: b.ID, Landings: undone.Landings, Commit: b.Commit, Next: d.afterUndo(undone)}
	if d.json {
		return d.printJSON(out)
	}
	to := file(d.Out)
	if !isTerminal(d.Out) { // a program gets the numbers alone
		for _, back := range out.Landings {
			fmt.Fprintln(d.Out, back.Seq)
		}
		to = d.Err
	}
	for _, back := range out.Landings {
		showUndone(to, back)
	}
	fmt.Fprintf(to, "batch %s is undone, by %s\n", clean(b.Name()), counted(len(out.Landings), "landing"))
	d.advise(out.Next)
	return nil
}

// afterUndo is what somebody does next about a batch that was undone.
func (d *decider) afterUndo(undone *acts.Undone) string {
	b := undone.Batch
	if b.Commit != "" {
		return typed(append([]string{"git", "commit", "-m", "Undo " + b.Name() + " (" + b.Commit + ")", "--"}, undone.Paths...)) + ", as commit " + b.Commit + " is still there"
	}
	return d.desk.RedoCommand(b.Name()) + ", to have it done anew"
}

// holding gets the locks for a command's own short work as its flags say.
func (p *program) holding(cmd *cobra.Command, a *app.App, o ownLock) acts.Hold {
	return func(_ context.Context, reason string, paths []string, work func(context.Context, *lockkeeper.Grant) error) error {
		return p.under(cmd, a, reason, o, paths, work)
	}
}
