package landings

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// undoneBatch is what came of it, as JSON.
type undoneBatch struct {
	Unit     string                `json:"unit"`
	Batch    string                `json:"batch"`
	Landings []*lockkeeper.Landing `json:"landings"` // those that took it back
	Commit   string                `json:"commit,omitempty"`
	Next     string                `json:"next,omitempty"`
}

// undoBatch undoes the landings of a batch.
func (p *program) undoBatch(cmd *cobra.Command, a *project.Project, flow, name string, o command.OwnLock) error {
	desk, err := acts.Open(cmd.Context(), a, flow, p.Person())
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
	if slices.Contains(desk.Units, name) {
		return &lockkeeper.InputError{Field: "batch", Value: name, Reason: "it is a unit, and batches are undone one by one", Next: desk.Command("decide", "show", "plan", name)}
	}
	undone, err := desk.UndoBatch(cmd.Context(), unit, batch, p.holding(cmd, desk.App, o))
	if err != nil {
		return err
	}
	b := undone.Batch
	out := undoneBatch{Unit: b.Unit, Batch: b.ID, Landings: undone.Landings, Commit: b.Commit, Next: afterUndo(desk, undone)}
	if p.JSON {
		return p.PrintJSON(out)
	}
	to := term.File(p.Out)
	if !term.IsTerminal(p.Out) { // a program gets the numbers alone
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

// afterUndo is what somebody does next about a batch that was undone.
func afterUndo(desk *acts.Decider, undone *acts.Undone) string {
	b := undone.Batch
	if b.Commit != "" {
		return shellword.Join(append([]string{"git", "commit", "-m", "Undo " + b.Name() + " (" + b.Commit + ")", "--"}, undone.Paths...)) + ", as commit " + b.Commit + " is still there"
	}
	return desk.RedoCommand(b.Name()) + ", to redo it"
}

// holding gets the locks for a command's own short work as its flags say.
func (p *program) holding(cmd *cobra.Command, a *project.Project, o command.OwnLock) acts.Hold {
	return func(_ context.Context, reason string, paths []string, work func(context.Context, *lockkeeper.Grant) error) error {
		return p.Under(cmd, a, reason, o, paths, work)
	}
}
