package acts

import (
	"context"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/store"
)

// Exclude excludes a unit or one of its batches from this run and later ones, or a screen from the
// merge of a controller.
type Exclude struct {
	Screen string `json:"screen,omitempty"`
	Part   string `json:"part,omitempty"` // the batch; without it and a screen the whole unit
	Why    string `json:"why"`
}

func (a Exclude) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	if a.Screen == "" {
		var v Verdict
		if err := d.exclude(ctx, unit, a.Part, a.Why, &v); err != nil {
			return v, err
		}
		return d.finish(ctx, v)
	}
	s, err := d.screen(unit, a.Screen)
	if err != nil {
		return Verdict{}, err
	}
	err = d.Tracker.ExcludeScreen(ctx, s.Module, s.Controller, s.Name, a.Why, d.By.Name)
	return d.one(ctx, err, planOf(unit), "excludes screen "+s.Name)
}

// Include reverses Exclude. What was queued when it was excluded returns to the queue.
type Include struct {
	Screen string `json:"screen,omitempty"`
	Part   string `json:"part,omitempty"`
}

func (a Include) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	if a.Screen == "" {
		return d.one(ctx, d.include(ctx, unit, a.Part), planOf(unit), "includes "+run.Work{Unit: unit, Part: a.Part}.Name()+" in runs again")
	}
	s, err := d.screen(unit, a.Screen)
	if err != nil {
		return Verdict{}, err
	}
	err = d.Tracker.IncludeScreen(ctx, s.Module, s.Controller, s.Name, d.By.Name)
	return d.one(ctx, err, planOf(unit), "includes screen "+s.Name+" again")
}

// exclude excludes a unit or a batch. While an agent works on it, exclude returns a *WrongStatusError.
// What is queued of it is canceled.
func (d *Decider) exclude(ctx context.Context, unit, batch, why string, v *Verdict) error {
	if err := d.knows(unit); err != nil {
		return err
	}
	name := run.Work{Unit: unit, Part: batch}.Name()
	err := d.eachItem(ctx, unit, batch, []string{batch}, func(_ *job.Queue, it *lockkeeper.Item) error {
		if it.Status != lockkeeper.ItemDispatched {
			return nil
		}
		return &lockkeeper.RefusedError{Act: "exclude " + name, Reason: "item " + it.ID + " (" + it.Workflow + ", " + it.Phase + ") runs", Next: "wait until it has ended, or cancel it: lockkeeper job cancel " + it.ID}
	})
	if err != nil {
		return err
	}
	left, err := d.Tracker.Exclude(ctx, unit, batch, why, d.By.Name)
	what := "excludes " + name + " from runs"
	var with []string
	for _, id := range left {
		if id != batch {
			with = append(with, id)
		}
	}
	if batch != "" && len(with) > 0 {
		what += ", and " + strings.Join(with, ", ") + ", which come after it"
	}
	if err == nil {
		err = d.cancelQueued(ctx, unit, batch, left, why)
	}
	v.take(err, planOf(unit), what)
	return nil
}

// cancelQueued cancels the queued items of an excluded unit, or of excluded batches.
func (d *Decider) cancelQueued(ctx context.Context, unit, batch string, left []string, why string) error {
	return d.eachItem(ctx, unit, batch, left, func(q *job.Queue, it *lockkeeper.Item) error {
		if it.Status != lockkeeper.ItemQueued {
			return nil
		}
		_, err := q.Cancel(ctx, it.ID, d.By, "excluded: "+why)
		return err
	})
}

func (d *Decider) include(ctx context.Context, unit, batch string) error {
	if err := d.knows(unit); err != nil {
		return err
	}
	u, err := d.Tracker.Unit(ctx, unit)
	if err != nil {
		return err
	}
	was := map[string]bool{}
	for _, b := range u.Batches {
		was[b.ID] = b.Excluded != nil
	}
	if err := d.Tracker.Include(ctx, unit, batch, d.By.Name); err != nil {
		return err
	}
	return d.requeue(ctx, unit, batch, was)
}

// requeue retries the items that were canceled because their work was excluded.
func (d *Decider) requeue(ctx context.Context, unit, batch string, was map[string]bool) error {
	u, err := d.Tracker.Unit(ctx, unit)
	if err != nil {
		return err
	}
	var back []string
	for _, b := range u.Batches {
		if was[b.ID] && b.Excluded == nil {
			back = append(back, b.ID)
		}
	}
	return d.eachItem(ctx, unit, batch, back, func(q *job.Queue, it *lockkeeper.Item) error {
		if !it.IsCanceled() {
			return nil
		}
		_, err := q.Retry(ctx, it.ID, d.By)
		return err
	})
}

// knows refuses an unknown unit. A unit that a run has not begun, or that failed in its first phase,
// has no documents.
func (d *Decider) knows(unit string) error {
	if slices.Contains(d.Units, unit) {
		return nil
	}
	units, _, err := conduct.Discovered(d.App, d.Flow.Name)
	if err == nil && !slices.Contains(units, unit) {
		err = &lockkeeper.InputError{Field: "unit", Value: unit, Reason: "no unit or batch has this name", Next: didYouMean(unit, append(units, d.Units...))}
	}
	return err
}

// eachItem calls the function do for the incomplete items of batches of a unit; without a batch, for
// all items of the unit.
func (d *Decider) eachItem(ctx context.Context, unit, batch string, batches []string, do func(*job.Queue, *lockkeeper.Item) error) error {
	q, err := job.Open(d.App)
	if err != nil {
		return err
	}
	var open map[string][]*lockkeeper.Item
	err = d.App.Store.View(ctx, func(r store.Reader) (err error) {
		open, err = run.OpenItems(r, d.Flow.Name)
		return err
	})
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, id := range batches {
		named[id] = true
	}
	for _, it := range open[unit] {
		if work, _ := run.WorkOf(it); batch != "" && !named[work.Part] {
			continue
		}
		if err := do(q, it); err != nil {
			return err
		}
	}
	return nil
}
