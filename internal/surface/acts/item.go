package acts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// Choice is a decision on one item.
type Choice struct {
	Ref      progress.Ref  `json:"ref"`
	Was      flow.Decision `json:"was,omitempty"` // the earlier decision, if the answer changes it
	Decision flow.Decision `json:"decision"`
	Notes    string        `json:"notes,omitempty"`

	like progress.Ref // the named item with the same text
}

// Decide stores decisions on items. Those of one unit are all stored, or none.
func (d *Decider) Decide(ctx context.Context, choices []Choice, seen Seen) (Verdict, error) {
	var v Verdict
	refs := make([]progress.Ref, len(choices))
	for i, c := range choices {
		refs[i] = c.Ref
	}
	if err := d.checkNamed(refs); err != nil {
		return v, err
	}
	d.choose(ctx, choices, seen, &v)
	return d.finish(ctx, v)
}

// decideAs decides on items, and on equal items of other units.
func decideAs(decision flow.Decision) func(*Decider, context.Context, []progress.Ref, AnswerInput, *Verdict) {
	return func(d *Decider, ctx context.Context, refs []progress.Ref, s AnswerInput, v *Verdict) {
		with := map[progress.Ref]progress.Ref{} // the named item of each equal item
		if !s.Only && s.Was == "" {
			queue, err := d.Waiting(ctx)
			if err != nil {
				v.Refused = append(v.Refused, err)
				return
			}
			with = sameAs(queue, refs)
		}
		var choices []Choice
		for _, r := range slices.Concat(refs, slices.SortedFunc(maps.Keys(with), func(a, b progress.Ref) int { return strings.Compare(a.String(), b.String()) })) {
			choices = append(choices, Choice{Ref: r, Was: flow.Decision(strings.ToUpper(s.Was)), Decision: decision, Notes: s.note(), like: with[r]})
		}
		d.choose(ctx, choices, s.Seen, v)
	}
}

// sameAs returns the open items that have the same text as a named item, each with that item.
func sameAs(queue []progress.Decision, refs []progress.Ref) map[progress.Ref]progress.Ref {
	with := map[progress.Ref]progress.Ref{}
	for _, g := range queue {
		if !slices.Contains(refs, g.Ref) {
			continue
		}
		for _, same := range g.Same {
			if !slices.Contains(refs, same) {
				with[same] = g.Ref
			}
		}
	}
	return with
}

func (d *Decider) choose(ctx context.Context, choices []Choice, seen Seen, v *Verdict) {
	var units []string
	for _, c := range choices {
		if !slices.Contains(units, c.Ref.Unit) {
			units = append(units, c.Ref.Unit)
		}
	}
	for _, unit := range units {
		mine := slices.DeleteFunc(slices.Clone(choices), func(c Choice) bool { return c.Ref.Unit != unit })
		list, refs := make([]progress.Choice, len(mine)), make([]progress.Ref, len(mine))
		for i, c := range mine {
			list[i], refs[i] = progress.Choice{Item: c.Ref.Item, Was: c.Was, Decision: c.Decision, Notes: c.Notes}, c.Ref
		}
		_, err := d.Unit(ctx, unit)
		if err == nil {
			err = d.Tracker.IfUnchanged(seen.of(refs...)).Decide(ctx, unit, d.By.Name, list...)
		}
		if err != nil && len(mine) > 1 {
			err = fmt.Errorf("no item of %s is decided: %w", unit, err)
		}
		if err != nil {
			v.Refused = append(v.Refused, err)
			continue
		}
		for _, c := range mine {
			one := Done{Ref: c.Ref, What: becomes(c.Decision), State: becomes(c.Decision), Like: c.like}
			if c.like != (progress.Ref{}) {
				one.What += ", because it has the same text as " + c.like.String()
			}
			v.Done = append(v.Done, one)
		}
	}
}

func becomes(decision flow.Decision) string {
	switch decision {
	case flow.Todo:
		return "will be done"
	case flow.Defer:
		return "is deferred"
	case flow.Reject:
		return "is rejected"
	}
	return "is open again"
}
