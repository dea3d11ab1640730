package web

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/surface/acts"
)

// linesSaid limits how many results are listed one by one.
const linesSaid = 4

// verdict describes the result of an act on a flow.
func verdict(decider *acts.Decider, v acts.Verdict, err error) (said, error) {
	s := said{Changed: len(v.Done) > 0, Flow: decider.Flow.Name}
	s.Lines = append(s.Lines, doneInWords(v.Done)...)
	for _, refused := range v.Refused {
		s = s.with(refused)
	}
	if err != nil {
		return s, err
	}
	s.Lines = append(s.Lines, v.Warnings...)
	for _, u := range v.Units {
		switch {
		case len(v.Units) > linesSaid:
		case u.Waits > 0:
			s.Lines = append(s.Lines, fmt.Sprintf("%s waits for %s.", u.Unit, counted(u.Waits, "more answer")))
		case u.Next != "":
			s.Lines = append(s.Lines, fmt.Sprintf("%s continues with %s.", u.Unit, plain(u.Next)))
		}
	}
	switch {
	case s.Changed && v.Conductor == "":
		s.Lines = append(s.Lines, "No run is active for this flow: it continues when you start one.")
	case s.Changed && v.Waiting == 0:
		s.Lines = append(s.Lines, "Nothing else waits for you.")
	}
	return s, nil
}

// doneInWords lists the results one by one if they are few, otherwise grouped by outcome.
func doneInWords(done []acts.Done) (lines []string) {
	if len(done) <= linesSaid {
		for _, one := range done {
			lines = append(lines, one.Ref.String()+" "+one.What)
		}
		return lines
	}
	var states []string
	count := map[string]int{}
	for _, one := range done {
		if count[one.State]++; count[one.State] == 1 {
			states = append(states, one.State)
		}
	}
	for _, state := range states {
		lines = append(lines, fmt.Sprintf("%d times: %s", count[state], state))
	}
	return lines
}

func answer(d *Dashboard, ctx context.Context, f form) (said, error) {
	refs, seen, err := f.refs()
	if err != nil {
		return said{}, err
	}
	word, err := f.need("word")
	if err != nil {
		return said{}, err
	}
	decider, err := d.decider(ctx, f)
	if err != nil {
		return said{}, err
	}
	saying := acts.AnswerInput{Was: f.Get("was"), Only: f.Get("same") == "", Text: f.Get("text"), Seen: seen}
	if note := strings.TrimSpace(f.Get("note")); note != "" {
		saying.Notes = []string{note}
	}
	v, err := decider.Give(ctx, word, refs, saying)
	s, err := verdict(decider, v, err)
	for _, one := range v.Done {
		s.Back = append(s.Back, one.Ref.String())
	}
	return s, err
}

func takeBack(d *Dashboard, ctx context.Context, f form) (said, error) {
	refs, _, err := f.refs()
	if err != nil {
		return said{}, err
	}
	decider, err := d.decider(ctx, f)
	if err != nil {
		return said{}, err
	}
	v, err := decider.Withdraw(ctx, refs)
	return verdict(decider, v, err)
}

// onPlan performs an act on the version of a unit's plan that the person saw.
func onPlan(d *Dashboard, ctx context.Context, f form, fields []string, do func(decider *acts.Decider, unit string, values []string, seen acts.Seen) (acts.Verdict, error)) (said, error) {
	values, err := f.needs(append([]string{"unit"}, fields...)...)
	if err != nil {
		return said{}, err
	}
	var seen acts.Seen
	if f.Has("ref") {
		if _, seen, err = f.refs(); err != nil {
			return said{}, err
		}
	}
	decider, err := d.decider(ctx, f)
	if err != nil {
		return said{}, err
	}
	v, err := do(decider, values[0], values[1:], seen)
	return verdict(decider, v, err)
}

func move(d *Dashboard, ctx context.Context, f form) (said, error) {
	return onPlan(d, ctx, f, []string{"item", "to"}, func(decider *acts.Decider, unit string, v []string, seen acts.Seen) (acts.Verdict, error) {
		return decider.MoveItem(ctx, unit, v[0], v[1], seen)
	})
}

func split(d *Dashboard, ctx context.Context, f form) (said, error) {
	return onPlan(d, ctx, f, []string{"batch", "item"}, func(decider *acts.Decider, unit string, v []string, seen acts.Seen) (acts.Verdict, error) {
		return decider.Split(ctx, unit, v[0], f.Values["item"], seen)
	})
}

func merge(d *Dashboard, ctx context.Context, f form) (said, error) {
	return onPlan(d, ctx, f, []string{"into", "from"}, func(decider *acts.Decider, unit string, v []string, seen acts.Seen) (acts.Verdict, error) {
		return decider.Merge(ctx, unit, v[0], v[1], seen)
	})
}

func setTargets(d *Dashboard, ctx context.Context, f form) (said, error) {
	return onPlan(d, ctx, f, []string{"batch", "paths"}, func(decider *acts.Decider, unit string, v []string, seen acts.Seen) (acts.Verdict, error) {
		var paths []string
		for line := range strings.Lines(v[1]) {
			if path := strings.TrimSpace(line); path != "" {
				paths = append(paths, path)
			}
		}
		return decider.SetTargets(ctx, unit, v[0], paths, seen)
	})
}

func addItem(d *Dashboard, ctx context.Context, f form) (said, error) {
	return onPlan(d, ctx, f, []string{"description"}, func(decider *acts.Decider, unit string, v []string, _ acts.Seen) (acts.Verdict, error) {
		return decider.AddItem(ctx, unit, flow.Ready{Description: v[0], Impact: flow.Level(f.Get("impact")), Effort: flow.Level(f.Get("effort")), Rationale: strings.TrimSpace(f.Get("rationale"))})
	})
}

func reenable(d *Dashboard, ctx context.Context, f form) (said, error) {
	return onPlan(d, ctx, f, []string{"item"}, func(decider *acts.Decider, unit string, v []string, _ acts.Seen) (acts.Verdict, error) {
		words, err := decider.Words(ctx, unit, v[0])
		if err != nil {
			return acts.Verdict{}, err
		}
		return decider.Reenable(ctx, unit, words, f.Get("undo") != "")
	})
}

func redo(d *Dashboard, ctx context.Context, f form) (said, error) {
	return onPlan(d, ctx, f, []string{"phase"}, func(decider *acts.Decider, unit string, v []string, seen acts.Seen) (acts.Verdict, error) {
		decider = decider.Seeing(seen)
		if batch := f.Get("batch"); batch != "" {
			if shown := f.Get("was"); shown != "" {
				if err := decider.StillIs(ctx, unit, batch, shown); err != nil {
					return acts.Verdict{}, err
				}
			}
			return decider.RedoBatch(ctx, unit, batch, v[0])
		}
		return decider.Redo(ctx, unit, v[0])
	})
}

func exclude(d *Dashboard, ctx context.Context, f form) (said, error) {
	return onPlan(d, ctx, f, []string{"screen", "note"}, func(decider *acts.Decider, unit string, v []string, _ acts.Seen) (acts.Verdict, error) {
		return decider.Exclude(ctx, unit, v[0], v[1])
	})
}

func include(d *Dashboard, ctx context.Context, f form) (said, error) {
	return onPlan(d, ctx, f, []string{"screen"}, func(decider *acts.Decider, unit string, v []string, _ acts.Seen) (acts.Verdict, error) {
		return decider.Include(ctx, unit, v[0])
	})
}
