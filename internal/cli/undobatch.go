package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
)

// undoneBatch is what came of it, as JSON.
type undoneBatch struct {
	Unit     string                `json:"unit"`
	Batch    string                `json:"batch"`
	Landings []*lockkeeper.Landing `json:"landings"` // those that took it back
	Commit   string                `json:"commit,omitempty"`
	Next     string                `json:"next,omitempty"`
}

// undoBatch puts back what a batch changed: its landings, the last first, under one
// grant. What was put back before, by somebody who died on the way, is passed over.
func (d *decider) undoBatch(cmd *cobra.Command, name string, o ownLock) error {
	ctx := cmd.Context()
	ref, _, err := d.ref(ctx, []string{name}, dossier.ReviewKind)
	if err != nil {
		return err
	}
	u, err := d.unit(ctx, ref.Unit)
	if err != nil {
		return err
	}
	b, _ := u.Batch(ref.Batch)
	refuse := func(reason, next string) error {
		return &lockkeeper.RefusedError{Act: "undo " + name, Reason: reason, Next: next}
	}
	switch {
	case b.Landed == nil:
		return refuse("it is "+b.Status+", and nothing of it is in the tree", "lockkeeper decide show review "+name)
	case b.Landed.Undone != nil:
		return refuse("it was undone by "+b.Landed.Undone.By+" at "+moment(b.Landed.Undone.At), "lockkeeper decide redo "+name+" "+firstPhase(d.flow))
	}
	g, err := d.a.Gate()
	if err != nil {
		return err
	}
	out := undoneBatch{Unit: u.Name, Batch: b.ID, Commit: b.Landed.Commit}
	paths, err := d.pathsOf(ctx, g, b.Landed.Landings)
	if err != nil {
		return err
	}
	err = d.under(cmd, d.a, "undo "+name, o, paths, func(ctx context.Context, grant *lockkeeper.Grant) error {
		for _, seq := range slices.Backward(b.Landed.Landings) {
			by, err := g.UndoneBy(ctx, seq)
			if err != nil {
				return err
			}
			if by != 0 {
				continue
			}
			back, err := g.Undo(ctx, grant, seq)
			if err != nil {
				return err
			}
			out.Landings = append(out.Landings, back)
		}
		return d.book.PutUndone(ctx, u.Name, b.ID, d.by.Name)
	})
	if err != nil {
		return err
	}
	return d.tellUndone(ctx, name, paths, out)
}

// pathsOf are the paths that landings changed.
func (d *decider) pathsOf(ctx context.Context, g *gate.Gate, landings []uint64) (paths []string, err error) {
	for _, seq := range landings {
		l, err := g.Landing(ctx, seq)
		if err != nil {
			return nil, err
		}
		for _, c := range l.Changes {
			if !slices.Contains(paths, c.Path) {
				paths = append(paths, c.Path)
			}
		}
	}
	return paths, nil
}

// tellUndone tells a run and the person what was put back.
func (d *decider) tellUndone(ctx context.Context, name string, paths []string, out undoneBatch) error {
	if err := d.a.Decided(ctx, d.by, "undo "+name); err != nil {
		return fmt.Errorf("%s is undone, and a run that waits could not be told: %w", name, err)
	}
	out.Next = "lockkeeper decide redo " + name + " " + firstPhase(d.flow) + ", to have it done anew"
	if out.Commit != "" {
		out.Next = typed(append([]string{"git", "commit", "-m", "Undo " + name + " (" + out.Commit + ")", "--"}, paths...)) + ", as commit " + out.Commit + " is still there"
	}
	if d.json {
		out.Landings = listOf(out.Landings)
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
	fmt.Fprintf(to, "batch %s is undone, by %s\n", clean(name), counted(len(out.Landings), "landing"))
	d.advise(out.Next)
	return nil
}

// firstPhase is the phase in which a batch is made.
func firstPhase(f flow.Flow) string {
	for _, p := range f.Phases {
		if p.Unit == flow.BatchUnit {
			return p.Name
		}
	}
	return ""
}
