package acts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
)

// Verdict is what came of an act.
type Verdict struct {
	Done      []Done     `json:"done"`
	Refused   []error    `json:"-"`
	Warnings  []string   `json:"warnings"`  // what is unwise in a plan
	Units     []Progress `json:"units"`     // of which something was done
	Waiting   int        `json:"waiting"`   // answers that are still wanted, in all
	Failed    int        `json:"failed"`    // pieces of work that failed and wait for a retry
	Conductor string     `json:"conductor"` // who goes on with it now; empty: nobody
}

// Done is something that was done.
type Done struct {
	Ref  progress.Ref `json:"ref"`
	What string       `json:"what"` // in words: what becomes of it

	// Like is the item that was named, of one that was not and says the same.
	Like progress.Ref `json:"like,omitzero"`
}

// Progress is how far a unit is after an act.
type Progress struct {
	Unit  string `json:"unit"`
	Next  string `json:"next"`  // the phase; empty: it is complete
	Waits int    `json:"waits"` // for so many more answers before it goes on
}

// Err is all that was refused, as one error.
func (v *Verdict) Err() error { return errors.Join(v.Refused...) }

// take takes up how one act went.
func (v *Verdict) take(err error, ref progress.Ref, what string) {
	if err != nil {
		v.Refused = append(v.Refused, err)
		return
	}
	v.Done = append(v.Done, Done{Ref: ref, What: what})
}

// one is the verdict of an act on one thing.
func (d *Decider) one(ctx context.Context, err error, ref progress.Ref, what string) (Verdict, error) {
	var v Verdict
	v.take(err, ref, what)
	return d.finish(ctx, v)
}

// finish tells a run that waits, and looks what goes on now.
func (d *Decider) finish(ctx context.Context, v Verdict) (Verdict, error) {
	v.Done, v.Warnings, v.Units = orEmpty(v.Done), orEmpty(v.Warnings), []Progress{}
	if err := d.tell(ctx, v.Done); err != nil {
		return v, err
	}
	return v, d.lookAfter(ctx, &v)
}

// tell has whoever conducts the flow look at what was done.
func (d *Decider) tell(ctx context.Context, list []Done) error {
	if len(list) == 0 {
		return nil
	}
	words := make([]string, len(list))
	for i, one := range list {
		words[i] = one.Ref.String() + " " + one.What
	}
	what := strings.Join(words, "; ")
	if err := conduct.RecordDecision(ctx, d.App, d.By, what); err != nil {
		return fmt.Errorf("it is stored (%s), and a run that waits could not be told: %w", what, err)
	}
	return nil
}

// lookAfter sees where the units are of which something was done.
func (d *Decider) lookAfter(ctx context.Context, v *Verdict) error {
	for _, one := range v.Done {
		if slices.ContainsFunc(v.Units, func(p Progress) bool { return p.Unit == one.Ref.Unit }) {
			continue
		}
		u, err := d.Book.Unit(ctx, one.Ref.Unit)
		if err != nil {
			return err
		}
		p := Progress{Unit: u.Name, Next: u.Phase()}
		for _, g := range u.OpenDecisions() {
			if g.Frees > 0 {
				p.Waits++
			}
		}
		v.Units = append(v.Units, p)
	}
	queue, err := d.Waiting(ctx)
	if err != nil {
		return err
	}
	failed, err := conduct.Failures(ctx, d.App, d.Flow.Name)
	if err != nil {
		return err
	}
	v.Waiting, v.Failed = len(queue), len(failed)
	v.Conductor, err = conduct.Holder(ctx, d.App)
	return err
}

// Look is the verdict of somebody who did nothing: what waits, what failed, and who goes on.
func (d *Decider) Look(ctx context.Context) (Verdict, error) { return d.finish(ctx, Verdict{}) }

// orEmpty is a list that JSON spells [] when it is empty.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
