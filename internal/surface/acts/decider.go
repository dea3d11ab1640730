package acts

import (
	"context"
	"errors"
	"fmt"
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

	runs, decides bool // whether lockkeeper run, and lockkeeper decide, use this flow by default
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
	case progress.FailureKind:
		_, there = u.CommonFailure(ref.Failure)
	case progress.GapKind:
		if b, ok := u.Batch(ref.Batch); ok {
			_, there = b.Gap(ref.Gap)
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
	if len(known) == 0 {
		return "use one of the names that lockkeeper run lists"
	}
	return config.Suggest(typed, known)
}

// Verdict is the result of an act.
type Verdict struct {
	Done      []Done     `json:"done"`
	Refused   []error    `json:"-"`
	Warnings  []string   `json:"warnings"`  // warnings about a plan
	Units     []Progress `json:"units"`     // units that changed
	Waiting   int        `json:"waiting"`   // open decisions
	Failed    int        `json:"failed"`    // failed items that can be retried
	Conductor string     `json:"conductor"` // holder that runs the flow; empty: no process runs it
}

// Done is one completed part of an act.
type Done struct {
	Ref   progress.Ref `json:"ref"`
	What  string       `json:"what"` // the new state, and why, if the item was not named
	State string       `json:"-"`    // the new state alone

	// Like is the named item, if this one was decided because it has the same text.
	Like progress.Ref `json:"like,omitzero"`
}

// Progress is the state of a unit after an act.
type Progress struct {
	Unit  string `json:"unit"`
	Next  string `json:"next"`  // the next phase; empty: the unit is complete
	Waits int    `json:"waits"` // answers that the unit needs before it can continue
}

func (v *Verdict) Err() error { return errors.Join(v.Refused...) }

// take records the result of one act.
func (v *Verdict) take(err error, ref progress.Ref, what string) {
	if err != nil {
		v.Refused = append(v.Refused, err)
		return
	}
	v.Done = append(v.Done, Done{Ref: ref, What: what, State: what})
}

// one returns the verdict of a single act.
func (d *Decider) one(ctx context.Context, err error, ref progress.Ref, what string) (Verdict, error) {
	var v Verdict
	v.take(err, ref, what)
	return d.finish(ctx, v)
}

// finish informs the run and adds the new state to the verdict.
func (d *Decider) finish(ctx context.Context, v Verdict) (Verdict, error) {
	v.Done, v.Warnings, v.Units = OrEmpty(v.Done), OrEmpty(v.Warnings), []Progress{}
	if err := d.tell(ctx, v.Done); err != nil {
		return v, err
	}
	return v, d.addState(ctx, &v)
}

// tell informs the process that runs the flow.
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
		return fmt.Errorf("it is stored (%s), but the run could not be informed: %w", what, err)
	}
	return nil
}

// addState adds the state of the changed units, and of the flow.
func (d *Decider) addState(ctx context.Context, v *Verdict) error {
	for _, one := range v.Done {
		if slices.ContainsFunc(v.Units, func(p Progress) bool { return p.Unit == one.Ref.Unit }) {
			continue
		}
		u, err := d.Tracker.Unit(ctx, one.Ref.Unit)
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

// State returns a verdict without an act: the open decisions, the failed items, and the holder that runs the
// flow.
func (d *Decider) State(ctx context.Context) (Verdict, error) { return d.finish(ctx, Verdict{}) }

// OrEmpty replaces nil with an empty list, so that JSON has [].
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
