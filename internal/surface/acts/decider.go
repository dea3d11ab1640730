package acts

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
)

// A Decider acts for one person on the documents of one flow.
type Decider struct {
	App     *project.Project
	Flow    flow.Flow
	Tracker *progress.Tracker
	Units   []string // units that have documents
	By      lockkeeper.Actor

	runs, decides bool // whether that command uses this flow by default
}

// Open opens the documents of a flow; "": the current or last flow.
func Open(ctx context.Context, a *project.Project, flowName string, by lockkeeper.Actor) (*Decider, error) {
	name, err := conduct.LastFlow(a, flowName)
	if err != nil {
		return nil, err
	}
	last, err := conduct.LastFlow(a, "")
	if err != nil {
		return nil, err
	}
	next, err := conduct.FlowName(a, "", "")
	if err != nil {
		return nil, err
	}
	tracker, f, docs, err := conduct.OpenDocuments(a, name)
	if err != nil {
		return nil, err
	}
	d := &Decider{App: a, Flow: f, Tracker: tracker, By: by, runs: next == name, decides: last == name}
	d.Units, err = conduct.Units(ctx, f, docs)
	return d, err
}

// Command returns a command about this flow as a person types it, with --flow if the
// default is another flow.
func (d *Decider) Command(words ...string) string {
	words = append([]string{"lockkeeper"}, words...)
	means := d.decides
	if words[1] == "run" {
		means = d.runs
	}
	if !means {
		words = append(words, "--flow", d.Flow.Name)
	}
	return strings.Join(words, " ")
}

// Unit reads a unit, or returns an error if it is unknown.
func (d *Decider) Unit(ctx context.Context, name string) (*progress.Unit, error) {
	if !slices.Contains(d.Units, name) {
		return nil, &lockkeeper.InputError{Field: "unit", Value: name, Reason: "the flow " + d.Flow.Name + " has no documents of this unit", Next: didYouMean(name, d.Units)}
	}
	return d.Tracker.Unit(ctx, name)
}

// Has reports whether a reference names something, open or not.
func (d *Decider) Has(ctx context.Context, ref progress.Ref) (bool, error) {
	if !slices.Contains(d.Units, ref.Unit) {
		return false, nil
	}
	u, err := d.Tracker.Unit(ctx, ref.Unit)
	return err == nil && isIn(u, ref), err
}

// isIn reports whether a unit has the part that a reference names.
func isIn(u *progress.Unit, ref progress.Ref) (there bool) {
	switch ref.Kind {
	case progress.TopicKind:
		there = slices.ContainsFunc(u.Topics, func(t progress.Topic) bool { return t.Slug == ref.Topic })
	case progress.ItemKind:
		_, there = u.Item(ref.Item)
	case progress.PlanKind:
		there = true
	case progress.ReviewKind:
		_, there = u.Batch(ref.Batch)
	case progress.GapKind:
		if b, ok := u.Batch(ref.Batch); ok {
			there = ref.Gap <= len(b.Gaps())
		}
	}
	return there
}

// need reads the unit of a reference, or returns an error if either is unknown.
func (d *Decider) need(ctx context.Context, ref progress.Ref) (*progress.Unit, error) {
	u, err := d.Unit(ctx, ref.Unit)
	if err == nil && !isIn(u, ref) {
		err = &lockkeeper.InputError{Field: "reference", Value: ref.String(), Reason: ref.Unit + " has no such " + string(ref.Kind), Next: d.Command("decide", "show", "plan", ref.Unit)}
	}
	return u, err
}

// Waiting lists the open decisions of the flow, each with its version.
func (d *Decider) Waiting(ctx context.Context) ([]progress.Decision, error) {
	return d.Tracker.Waiting(ctx, d.Units)
}

// didYouMean returns the next step after an unknown name.
func didYouMean(typed string, known []string) string {
	if near, ok := config.Nearest(typed, known); ok {
		return "did you mean " + near + "?"
	}
	return "use one of " + cmp.Or(strings.Join(known, ", "), "the names that lockkeeper run lists")
}
