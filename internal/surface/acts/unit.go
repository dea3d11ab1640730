package acts

import (
	"context"
	"fmt"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/store"
)

func planOf(unit string) progress.Ref { return progress.Ref{Kind: progress.PlanKind, Unit: unit} }

func reviewOf(unit, batch string) progress.Ref {
	return progress.Ref{Kind: progress.ReviewKind, Unit: unit, Batch: batch}
}

// AddItem adds an item of a person, decided as todo.
func (d *Decider) AddItem(ctx context.Context, unit string, item flow.Ready) (Verdict, error) {
	if _, err := d.Unit(ctx, unit); err != nil {
		return Verdict{}, err
	}
	id, err := d.Tracker.AddItem(ctx, unit, item, d.By.Name)
	return d.one(ctx, err, progress.Ref{Kind: progress.ItemKind, Unit: unit, Item: id}, "is added and will be done")
}

// Words returns the description of an item. The item may be one that the audit dropped.
func (d *Decider) Words(ctx context.Context, unit, item string) (string, error) {
	u, err := d.Unit(ctx, unit)
	if err != nil {
		return "", err
	}
	if known, ok := u.Item(item); ok {
		return known.Description, nil
	}
	for _, g := range u.DroppedItems() {
		if g.ID == item {
			return g.Description, nil
		}
	}
	return "", &lockkeeper.InputError{Field: "item", Value: unit + "/" + item, Reason: "no dropped item has this id", Next: d.Command("decide", "show", "plan", unit)}
}

// Reenable allows an item rejected in an earlier run to be proposed again; undo reverses
// that.
func (d *Decider) Reenable(ctx context.Context, unit, description string, undo bool) (Verdict, error) {
	if _, err := d.Unit(ctx, unit); err != nil {
		return Verdict{}, err
	}
	act, what := d.Tracker.Reenable, "re-enables"
	if undo {
		act, what = d.Tracker.UndoReenable, "no longer re-enables"
	}
	again, err := act(ctx, unit, description, d.By.Name)
	what += fmt.Sprintf(" %q", description)
	if !again {
		what += ", starting with the next run"
	}
	return d.one(ctx, err, planOf(unit), what)
}

// Exclude excludes a screen from the merge of a controller.
func (d *Decider) Exclude(ctx context.Context, unit, screen, why string) (Verdict, error) {
	s, err := d.screen(unit, screen)
	if err != nil {
		return Verdict{}, err
	}
	err = d.Tracker.ExcludeScreen(ctx, s.Module, s.Controller, s.Name, why, d.By.Name)
	return d.one(ctx, err, planOf(unit), "excludes screen "+s.Name)
}

// Include reverses Exclude.
func (d *Decider) Include(ctx context.Context, unit, screen string) (Verdict, error) {
	s, err := d.screen(unit, screen)
	if err != nil {
		return Verdict{}, err
	}
	err = d.Tracker.IncludeScreen(ctx, s.Module, s.Controller, s.Name, d.By.Name)
	return d.one(ctx, err, planOf(unit), "includes screen "+s.Name+" again")
}

// screen returns a screen of the manifest.
func (d *Decider) screen(unit, name string) (s flow.ManifestScreen, err error) {
	if !d.Flow.HasScreens() {
		return s, &lockkeeper.InputError{Field: "flow", Value: d.Flow.Name, Reason: "this flow has no screens", Next: "--flow " + flow.ForScreens().Name}
	}
	m, err := conduct.Manifest(d.App)
	if err != nil {
		return s, err
	}
	var known []string
	for _, s := range m.Screens {
		if s.Unit() == unit && s.Name == name {
			return s, nil
		}
		known = append(known, s.ID())
	}
	return s, &lockkeeper.InputError{Field: "screen", Value: unit + "/" + name, Reason: "not in the screen manifest", Next: didYouMean(unit+"/"+name, known)}
}

// Redo repeats a phase of a unit and every later one. While an item of the unit runs it
// returns a *WrongStatusError.
func (d *Decider) Redo(ctx context.Context, unit, phase string) (Verdict, error) {
	if _, err := d.Unit(ctx, unit); err != nil {
		return Verdict{}, err
	}
	if err := d.standsStill(ctx, unit, "", phase); err != nil {
		return Verdict{}, err
	}
	return d.one(ctx, d.Tracker.Redo(ctx, unit, phase, d.By.Name), planOf(unit), "repeats the phase "+phase)
}

// RedoBatch repeats a phase of a batch and every later one. A landed batch must be undone
// first. While the batch runs it returns a *WrongStatusError.
func (d *Decider) RedoBatch(ctx context.Context, unit, batch, phase string) (Verdict, error) {
	ref := reviewOf(unit, batch)
	if _, err := d.need(ctx, ref); err != nil {
		return Verdict{}, err
	}
	if err := d.standsStill(ctx, unit, batch, phase); err != nil {
		return Verdict{}, err
	}
	return d.one(ctx, d.Tracker.RedoBatch(ctx, unit, batch, phase, d.By.Name), ref, "repeats the phase "+phase)
}

// standsStill refuses to redo a phase while an item runs, because its documents would be
// moved aside during its work.
func (d *Decider) standsStill(ctx context.Context, unit, batch, phase string) error {
	var open map[string][]*lockkeeper.Item
	err := d.App.Store.View(ctx, func(r store.Reader) (err error) {
		open, err = run.OpenItems(r, d.Flow.Name)
		return err
	})
	if err != nil {
		return err
	}
	at := where{unit: &progress.Unit{Name: unit}, part: batch}
	for _, it := range open[unit] {
		work, _ := run.WorkOf(it)
		if it.Status == lockkeeper.ItemDispatched && (batch == "" || work.Part == batch) {
			return &WrongStatusError{Unit: at.name(), Status: string(it.Status), Phase: phase,
				Next: fmt.Sprintf("wait until item %s (%s, %s) has ended, or cancel it: lockkeeper job cancel %s", it.ID, it.Workflow, it.Phase, it.ID)}
		}
	}
	return nil
}

// StillIs refuses an act on a batch as stale if its status is not the one the person saw.
func (d *Decider) StillIs(ctx context.Context, unit, batch, status string) error {
	ref := reviewOf(unit, batch)
	u, err := d.need(ctx, ref)
	if err != nil {
		return err
	}
	if b, _ := u.Batch(batch); b.Status != status {
		return &progress.StaleError{Ref: ref, Seen: status, Became: "the batch is " + b.Status}
	}
	return nil
}

// Retry requeues failed items at the phase in which they failed. They are named by unit,
// batch, screen or topic. The note is stored first, so that the agent finds it.
func (d *Decider) Retry(ctx context.Context, names []string, note string) (v Verdict, err error) {
	failed, err := d.failed(ctx, names)
	if err != nil {
		return v, err
	}
	return d.retry(ctx, failed, note)
}

func (d *Decider) retry(ctx context.Context, failed []run.Failure, note string) (v Verdict, err error) {
	q, err := job.Open(d.App)
	if err != nil {
		return v, err
	}
	for _, f := range failed {
		var err error
		if note != "" {
			n := progress.Note{Phase: f.Phase, Text: note, By: d.By.Name}
			if f.Kind == string(flow.BatchUnit) {
				n.Batch = f.Part
			}
			err = d.Tracker.AddNote(ctx, f.Unit, n)
		}
		if err == nil {
			_, err = q.Retry(ctx, f.Item, d.By)
		}
		v.take(err, planOf(f.Unit), fmt.Sprintf("retries %s in phase %s", f.Name(), f.Phase))
	}
	return d.finish(ctx, v)
}

// failed returns the failed items of the named units or parts.
func (d *Decider) failed(ctx context.Context, names []string) (list []run.Failure, err error) {
	all, err := conduct.Failures(ctx, d.App, d.Flow.Name)
	if err != nil {
		return nil, err
	}
	var known []string
	for _, f := range all {
		known = append(known, f.Name())
	}
	for _, name := range names {
		matches := slices.DeleteFunc(slices.Clone(all), func(f run.Failure) bool { return f.Name() != name && f.Unit != name })
		if len(matches) == 0 {
			next := d.Command("decide")
			if len(known) > 0 {
				next = didYouMean(name, known)
			}
			return nil, &lockkeeper.InputError{Field: "name", Value: name, Reason: "no failed unit, batch, screen or topic has this name", Next: next}
		}
		list = append(list, matches...)
	}
	return list, nil
}
