package web

import (
	"context"
	"strconv"

	"lockkeeper"
	"lockkeeper/internal/surface/acts"
)

// ofCause returns the cause that a form names, with the number of failures that the page showed.
func (f form) ofCause() (of acts.OfCause, err error) {
	of.Cause = f.Get("cause")
	if of.Was, err = strconv.Atoi(f.Get("was")); err != nil {
		err = &lockkeeper.InputError{Field: "was", Value: f.Get("was"), Reason: "not a number", Next: "reload the page"}
	}
	return of, err
}

func retryCause(d *Dashboard, ctx context.Context, f form) (said, error) {
	of, err := f.ofCause()
	if err != nil {
		return said{}, err
	}
	decider, err := d.decider(ctx, f)
	if err != nil {
		return said{}, err
	}
	v, err := acts.RetryCause{OfCause: of, Note: f.Get("note")}.Do(ctx, decider)
	return verdict(decider, v, err)
}

func excludeCause(d *Dashboard, ctx context.Context, f form) (said, error) {
	of, err := f.ofCause()
	if err != nil {
		return said{}, err
	}
	decider, err := d.decider(ctx, f)
	if err != nil {
		return said{}, err
	}
	v, err := acts.ExcludeCause{OfCause: of, Why: f.Get("why")}.Do(ctx, decider)
	return verdict(decider, v, err)
}

func includeAll(d *Dashboard, ctx context.Context, f form) (said, error) {
	decider, err := d.decider(ctx, f)
	if err != nil {
		return said{}, err
	}
	v, err := decider.IncludeAll(ctx, f.Values["name"])
	return verdict(decider, v, err)
}
