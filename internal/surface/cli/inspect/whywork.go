package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// A piece is a unit of the current or last run, or a batch of one.
type piece struct {
	view.BoardUnit
	batch *view.BoardBatch // nil for the unit
}

func (w piece) name() string {
	if w.batch == nil {
		return w.Name
	}
	return w.Name + "/" + w.batch.ID
}

// pieces lists the units of the current or last run and their batches. Without a run there are none.
func pieces(ctx context.Context, a *project.Project) (list []piece, err error) {
	if run, err := conduct.CurrentRun(a); err != nil || run == nil {
		return nil, err
	}
	board, err := view.New(a).Board(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, u := range board.Units {
		list = append(list, piece{BoardUnit: u})
		for i := range u.Batches {
			list = append(list, piece{u, &u.Batches[i]})
		}
	}
	return list, nil
}

// whyWork explains a unit, a batch or a task that a name means. An unknown name is an error with suggestions.
func (p *program) whyWork(ctx context.Context, a *project.Project, q *job.Queue, name string) error {
	all, err := pieces(ctx, a)
	if err != nil {
		return err
	}
	var found []piece
	for _, w := range all {
		switch {
		case w.name() == name:
			found = []piece{w}
		case w.batch != nil && w.batch.ID == name && !slices.ContainsFunc(found, func(o piece) bool { return o.name() == name }):
			found = append(found, w)
		}
	}
	switch {
	case len(found) > 1:
		return &lockkeeper.InputError{Field: "name", Value: name, Reason: "ambiguous: " + term.JoinFew(found, 8, piece.name), Next: "write the unit before it, as in " + found[0].name()}
	case len(found) == 0:
		return p.unknownName(ctx, a, name, all)
	}
	w := found[0]
	if w.batch == nil {
		unit, err := view.New(a).Unit(ctx, "", w.Name)
		if err != nil {
			return err
		}
		return p.Show(unit, func() { p.showUnit(w, unit) })
	}
	if it, err := q.Find(ctx, w.name()); err != nil || it != nil {
		if err != nil {
			return err
		}
		return jobs.WhyItem(ctx, p.Program, a, q, it.ID)
	}
	return p.Show(w.batch, func() { fmt.Fprintln(p.Out, p.Painter(p.Out)(term.Bold, w.name())+" "+w.situation(*w.batch)) })
}

// unknownName returns the error for a name that means nothing.
func (p *program) unknownName(ctx context.Context, a *project.Project, name string, all []piece) error {
	var known []string
	entries, err := a.Locks.Requests(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		known = append(known, e.Holder)
		for _, l := range e.Targets {
			known = append(known, l.Path)
		}
	}
	for _, w := range all {
		if known = append(known, w.name()); w.batch != nil {
			known = append(known, w.batch.ID)
		}
	}
	items, _, err := view.New(a).FirstItems(ctx, knownItems, lockkeeper.ItemDispatched, lockkeeper.ItemQueued, lockkeeper.ItemError, lockkeeper.ItemCompleted)
	if err != nil {
		return err
	}
	for _, it := range items {
		known = append(known, it.ID, it.Workflow, it.Key)
	}
	next := "lockkeeper status, or lockkeeper job list"
	if near, ok := config.Nearest(name, slices.DeleteFunc(known, func(k string) bool { return k == "" })); ok {
		next = "did you mean " + near + "?"
	}
	return &lockkeeper.InputError{Field: "name", Value: name, Reason: "no path, holder, grant, item, task, batch, unit or resource has this name", Next: next}
}

// knownItems is how many items of each status a suggestion may name.
const knownItems = 100

// situation describes where a batch is, and what it waits for.
func (w piece) situation(b view.BoardBatch) string {
	text := words(b.Status)
	if !flow.IsDone(b.Status) && b.Status != flow.Failed && len(b.Blocked) > 0 {
		text = "waits for " + term.Join(b.Blocked, func(id string) string {
			for _, o := range w.Batches {
				if o.ID == id && o.Status == flow.Failed {
					return id + ", which failed"
				}
			}
			return term.Clean(id)
		})
	}
	if b.Error != "" {
		text += ": " + firstLine(b.Error)
	}
	return text
}

// words returns a status for people.
func words(status string) string {
	if status == flow.Failed {
		return "failed"
	}
	return strings.ReplaceAll(status, "_", " ")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return term.Clean(lockkeeper.LocalTimes(line))
}

func (p *program) showUnit(w piece, unit *view.Unit) {
	fmt.Fprintln(p.Out, p.Painter(p.Out)(term.Bold, term.Clean(w.Name))+" "+words(w.Status))
	if w.Error != "" && len(w.Batches) == 0 {
		fmt.Fprintln(p.Out, " why   "+firstLine(w.Error))
	}
	width := 0
	for _, b := range w.Batches {
		width = max(width, len(b.ID))
	}
	for _, b := range w.Batches {
		fmt.Fprintf(p.Out, "  %-*s  %s\n", width, term.Clean(b.ID), w.situation(b))
	}
	for _, work := range unit.Work {
		for _, wait := range work.Waits {
			fmt.Fprintf(p.Out, " waits %s (%s) for %s\n", term.Clean(work.Name), work.ID, term.Clean(wait.Text))
		}
	}
	if unit.Cost.Calls > 0 {
		fmt.Fprintf(p.Out, " cost  $%.2f, %s\n", unit.Cost.USD, term.Counted(unit.Cost.Calls, "call"))
	}
	if len(unit.Landings) > 0 {
		fmt.Fprintf(p.Out, " landings  %s\n", term.JoinFew(unit.Landings, 8, func(l view.Landing) string { return fmt.Sprint(l.Seq) }))
	}
	if w.First != nil {
		p.Advise("lockkeeper decide show " + w.First.String())
	}
}
