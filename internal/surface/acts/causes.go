package acts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
)

// OfCause names all failures of one cause.
type OfCause struct {
	Cause string `json:"cause"`         // the id of the cause
	Was   int    `json:"was,omitempty"` // how many failures the person saw; 0: any number
}

// RetryCause retries all failures of one cause.
type RetryCause struct {
	OfCause
	Note string `json:"note,omitempty"` // text for the agents
}

func (a RetryCause) Do(ctx context.Context, d *Decider) (Verdict, error) {
	c, err := d.cause(ctx, a.OfCause, "retry")
	if err != nil {
		return Verdict{}, err
	}
	return d.retry(ctx, c.Failures, a.Note)
}

// ExcludeCause excludes all failed work of one cause from runs: batches and screens by themselves,
// other work with its unit.
type ExcludeCause struct {
	OfCause
	Why string `json:"why,omitempty"` // empty: the title of the cause
}

func (a ExcludeCause) Do(ctx context.Context, d *Decider) (Verdict, error) {
	c, err := d.cause(ctx, a.OfCause, "exclude")
	if err != nil {
		return Verdict{}, err
	}
	if a.Why == "" {
		a.Why = "it failed: " + c.Title
	}
	var v Verdict
	for _, f := range c.Failures {
		if f.Kind == string(flow.Screen) {
			one, err := Exclude{Screen: f.Part, Why: a.Why}.Do(ctx, d, f.Unit)
			v.Done, v.Refused = append(v.Done, one.Done...), append(v.Refused, one.Refused...)
			if err != nil {
				v.Refused = append(v.Refused, err)
			}
			continue
		}
		part := ""
		if f.Kind == string(flow.BatchUnit) {
			part = f.Part
		}
		err := d.exclude(ctx, f.Unit, part, a.Why, &v)
		if err != nil {
			v.Refused = append(v.Refused, err)
		}
	}
	return d.finish(ctx, v)
}

// Causes groups the failures of the flow by their causes, the most frequent first.
func (d *Decider) Causes(ctx context.Context) ([]conduct.Cause, error) {
	failed, err := conduct.Failures(ctx, d.App, d.Flow.Name)
	if err != nil {
		return nil, err
	}
	return conduct.NewCauseReader(d.App).Causes(failed)
}

// cause returns a cause with its failures. If there are more or fewer than the person saw, it returns
// a *lockkeeper.RefusedError.
func (d *Decider) cause(ctx context.Context, of OfCause, act string) (*conduct.Cause, error) {
	list, err := d.Causes(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(c conduct.Cause) bool { return c.ID == of.Cause })
	if at < 0 {
		return nil, &lockkeeper.InputError{Field: "cause", Value: of.Cause, Reason: "no failure has this cause", Next: d.Command("decide", "failed")}
	}
	c := &list[at]
	if n := len(c.Failures); of.Was > 0 && of.Was != n {
		return nil, &lockkeeper.RefusedError{Act: act + " all failures of " + c.Title, Reason: fmt.Sprintf("there were %d, and now there are %d", of.Was, n), Next: "look again: " + d.Command("decide", "failed")}
	}
	return c, nil
}

// ExcludeAll excludes units and batches, named by unit or unit/batch, from runs.
func (d *Decider) ExcludeAll(ctx context.Context, names []string, why string) (v Verdict, err error) {
	works, err := d.works(names)
	if err != nil {
		return v, err
	}
	for _, w := range works {
		if err := d.exclude(ctx, w.Unit, w.Part, why, &v); err != nil {
			v.Refused = append(v.Refused, err)
		}
	}
	return d.finish(ctx, v)
}

// IncludeAll reverses ExcludeAll.
func (d *Decider) IncludeAll(ctx context.Context, names []string) (v Verdict, err error) {
	works, err := d.works(names)
	if err != nil {
		return v, err
	}
	for _, w := range works {
		v.take(d.include(ctx, w.Unit, w.Part), planOf(w.Unit), "includes "+w.Name()+" in runs again")
	}
	return d.finish(ctx, v)
}

// works returns units and batches by their names.
func (d *Decider) works(names []string) (list []run.Work, err error) {
	if len(names) == 0 {
		return nil, &lockkeeper.InputError{Field: "names", Reason: "required", Next: "name units, or batches such as unit/b1"}
	}
	for _, name := range names {
		unknown := d.knows(name)
		if unknown == nil {
			list = append(list, run.Work{Unit: name})
			continue
		}
		at := strings.LastIndexByte(name, '/')
		if at < 0 || !slices.Contains(d.Units, name[:at]) {
			return nil, unknown
		}
		list = append(list, run.Work{Unit: name[:at], Part: name[at+1:]})
	}
	return list, nil
}
