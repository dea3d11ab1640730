package acts

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/config"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
)

// Desk is a person in front of one flow of an open codebase.
type Desk struct {
	App   *app.App
	Flow  flow.Flow
	Book  *dossier.Book
	Units []string // that have documents
	By    lockkeeper.Actor

	runs, decides bool // whether that command means this flow without being told
}

// Open opens the documents of a flow: of the one that is named, or else that is under way
// or was last.
func Open(ctx context.Context, a *app.App, flowName string, by lockkeeper.Actor) (*Desk, error) {
	name, err := a.LastFlow(flowName)
	if err != nil {
		return nil, err
	}
	last, err := a.LastFlow("")
	if err != nil {
		return nil, err
	}
	next, err := a.FlowName("", "")
	if err != nil {
		return nil, err
	}
	book, f, docs, err := a.Book(name)
	if err != nil {
		return nil, err
	}
	d := &Desk{App: a, Flow: f, Book: book, By: by, runs: next == name, decides: last == name}
	d.Units, err = a.UnitsOf(ctx, f, docs)
	return d, err
}

// Seeing is the desk for one act of a person who saw these versions: on a unit of which
// one is not so any more it is refused as stale.
func (d *Desk) Seeing(seen Seen) *Desk {
	careful := *d
	careful.Book = d.Book.Seeing(seen)
	return &careful
}

// Command is a command about this flow as one would type it: it names the flow where
// another one would be meant.
func (d *Desk) Command(words ...string) string {
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

// Unit reads a unit that must be there.
func (d *Desk) Unit(ctx context.Context, name string) (*dossier.Unit, error) {
	if !slices.Contains(d.Units, name) {
		return nil, &lockkeeper.InputError{Field: "unit", Value: name, Reason: "the flow " + d.Flow.Name + " has no documents of it", Next: didYouMean(name, d.Units)}
	}
	return d.Book.Unit(ctx, name)
}

// Has reports whether there is what a reference names, whether it waits or not.
func (d *Desk) Has(ctx context.Context, ref dossier.Ref) (bool, error) {
	if !slices.Contains(d.Units, ref.Unit) {
		return false, nil
	}
	u, err := d.Book.Unit(ctx, ref.Unit)
	return err == nil && isIn(u, ref), err
}

// isIn reports whether a unit has what a reference names.
func isIn(u *dossier.Unit, ref dossier.Ref) (there bool) {
	switch ref.Kind {
	case dossier.TopicKind:
		there = slices.ContainsFunc(u.Topics, func(t dossier.Topic) bool { return t.Slug == ref.Topic })
	case dossier.ItemKind:
		_, there = u.Item(ref.Item)
	case dossier.PlanKind:
		there = true
	case dossier.ReviewKind:
		_, there = u.Batch(ref.Batch)
	case dossier.GapKind:
		if b, ok := u.Batch(ref.Batch); ok {
			there = ref.Gap <= len(b.Gaps())
		}
	}
	return there
}

// need reads the unit of a reference to something that must be there.
func (d *Desk) need(ctx context.Context, ref dossier.Ref) (*dossier.Unit, error) {
	u, err := d.Unit(ctx, ref.Unit)
	if err == nil && !isIn(u, ref) {
		err = &lockkeeper.InputError{Field: "reference", Value: ref.String(), Reason: ref.Unit + " has no such " + string(ref.Kind), Next: d.Command("decide", "show", "plan", ref.Unit)}
	}
	return u, err
}

// Waiting lists all that waits for a person in the flow, each with its version.
func (d *Desk) Waiting(ctx context.Context) ([]dossier.Gate, error) {
	return d.Book.Waiting(ctx, d.Units)
}

// Asked lists the topics that the Messages API is to be asked about.
func (d *Desk) Asked(ctx context.Context) (list []dossier.Ref, err error) {
	for _, unit := range d.Units {
		u, err := d.Book.Unit(ctx, unit)
		if err != nil {
			return nil, err
		}
		slugs, err := d.Book.ByAPI(ctx, u)
		if err != nil {
			return nil, err
		}
		for _, slug := range slugs {
			list = append(list, dossier.Ref{Kind: dossier.TopicKind, Unit: unit, Topic: slug})
		}
	}
	return list, nil
}

// didYouMean is the next step for somebody who mistyped a name.
func didYouMean(typed string, known []string) string {
	if near, ok := config.Nearest(typed, known); ok {
		return "did you mean " + near + "?"
	}
	return "use one of " + cmp.Or(strings.Join(known, ", "), "those that lockkeeper run makes")
}
