package acts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/store"
)

func planOf(unit string) progress.Ref { return progress.Ref{Kind: progress.PlanKind, Unit: unit} }

func reviewOf(unit, batch string) progress.Ref {
	return progress.Ref{Kind: progress.ReviewKind, Unit: unit, Batch: batch}
}

// A UnitAct is an act on a unit, its plan or its batches. Its fields are its input, in JSON
// and in forms; those that are not omitempty are required.
type UnitAct interface {
	Do(ctx context.Context, d *Decider, unit string) (Verdict, error)
}

type UnitActKind struct {
	Name    string
	Summary string
	New     func() UnitAct // returns a pointer to an act without input
}

// UnitActs returns every kind of UnitAct, for the HTTP API and the dashboard.
func UnitActs() []UnitActKind {
	return []UnitActKind{
		{"add-item", "Add an item of your own, which will be done", func() UnitAct { return &AddItem{} }},
		{"reenable", "Allow an item that was rejected in an earlier run to be proposed again; undo reverses that", func() UnitAct { return &Reenable{} }},
		{"exclude", "Exclude a unit or a batch from runs, or a screen from the merge of a controller", func() UnitAct { return &Exclude{} }},
		{"include", "Include a unit, a batch or a screen again", func() UnitAct { return &Include{} }},
		{"redo", "Repeat a phase of a unit or of one of its batches, and every later phase", func() UnitAct { return &Redo{} }},
		{"move", "Move an item to another batch", func() UnitAct { return &MoveItem{} }},
		{"split", "Move items of a batch to a new batch after it", func() UnitAct { return &Split{} }},
		{"merge", "Move all items of one batch to another", func() UnitAct { return &Merge{} }},
		{"targets", "Set the files that a batch may change", func() UnitAct { return &SetTargets{} }},
		{"question", "Ask an agent about a unit, or about an item of it; without text, to explain the item", func() UnitAct { return &Ask{} }},
		{"comment", "Comment on a line of the diff of a batch, for the next agent that changes it; with an id, change or remove a comment", func() UnitAct { return &Comment{} }},
		{"retry", "Retry what failed of a unit, or of a part of it", func() UnitAct { return &Retry{} }},
	}
}

// AddItem adds an item of a person, decided as todo.
type AddItem struct {
	Description string     `json:"description"`
	Impact      flow.Level `json:"impact,omitempty"` // empty: medium
	Effort      flow.Level `json:"effort,omitempty"` // empty: medium
	Rationale   string     `json:"rationale,omitempty"`
}

func (a AddItem) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	if _, err := d.Unit(ctx, unit); err != nil {
		return Verdict{}, err
	}
	id, err := d.Tracker.AddItem(ctx, unit, flow.Ready{Description: a.Description, Impact: a.Impact, Effort: a.Effort, Rationale: a.Rationale}, d.By.Name)
	return d.one(ctx, err, progress.Ref{Kind: progress.ItemKind, Unit: unit, Item: id}, "is added and will be done")
}

// Ask asks a question about a unit, or about an item of it. An agent that only reads answers it in
// the next run.
type Ask struct {
	Text string `json:"text,omitempty"` // empty: explain the item
	Item string `json:"item,omitempty"`
}

func (a Ask) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	if _, err := d.Unit(ctx, unit); err != nil {
		return Verdict{}, err
	}
	id, err := d.Tracker.AskQuestion(ctx, unit, progress.Question{Item: a.Item, Text: a.Text, By: d.By.Name})
	return d.one(ctx, err, planOf(unit), "has "+id+", which the next run answers: lockkeeper run --only "+unit+"/"+id)
}

// Reenable allows an item rejected in an earlier run to be proposed again.
type Reenable struct {
	Item        string `json:"item,omitempty"` // id; empty: the description names the item
	Description string `json:"description,omitempty"`
	Undo        bool   `json:"undo,omitempty"` // reject the item again
}

func (a Reenable) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	u, err := d.Unit(ctx, unit)
	if err == nil && a.Item != "" {
		a.Description, err = d.description(u, a.Item)
	}
	if err != nil {
		return Verdict{}, err
	}
	act, what := d.Tracker.Reenable, "re-enables"
	if a.Undo {
		act, what = d.Tracker.UndoReenable, "no longer re-enables"
	}
	again, err := act(ctx, unit, a.Description, d.By.Name)
	what += fmt.Sprintf(" %q", a.Description)
	if !again {
		what += ", starting with the next run"
	}
	return d.one(ctx, err, planOf(unit), what)
}

// description returns the description of an item, which may be one that the audit dropped.
func (d *Decider) description(u *progress.Unit, item string) (string, error) {
	if known, ok := u.Item(item); ok {
		return known.Description, nil
	}
	for _, g := range u.DroppedItems() {
		if g.ID == item {
			return g.Description, nil
		}
	}
	return "", &lockkeeper.InputError{Field: "item", Value: u.Name + "/" + item, Reason: "no dropped item has this id", Next: d.Command("decide", "show", "plan", u.Name)}
}

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

// Redo repeats a phase of a unit or of one of its batches, and every later one. A landed
// batch must be undone first. While an item of the unit or batch runs, Redo returns a
// *WrongStatusError.
type Redo struct {
	Phase string `json:"phase"`
	Batch string `json:"batch,omitempty"`
	Was   string `json:"was,omitempty"`  // the status of the batch that the person saw; empty: any
	Note  string `json:"note,omitempty"` // text for the agent that repeats the phase
	Seen  Seen   `json:"seen,omitempty"`
}

func (a Redo) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	ref := planOf(unit)
	if a.Batch != "" {
		ref = reviewOf(unit, a.Batch)
	}
	u, err := d.need(ctx, ref)
	if err != nil {
		return Verdict{}, err
	}
	if b, ok := u.Batch(a.Batch); ok && a.Was != "" && b.Status != a.Was {
		return Verdict{}, &progress.StaleError{Ref: ref, Seen: a.Was, Became: "the batch is " + b.Status}
	}
	if err := d.standsStill(ctx, unit, a.Batch, a.Phase); err != nil {
		return Verdict{}, err
	}
	tracker := d.Tracker.IfUnchanged(a.Seen)
	if text := strings.TrimSpace(a.Note); text != "" { // written first, so that the agent finds the note
		if err := tracker.AddNote(ctx, unit, progress.Note{Phase: a.Phase, Batch: a.Batch, Text: text, By: d.By.Name}); err != nil {
			return Verdict{}, err
		}
	}
	comments, err := d.noteComments(ctx, unit, a.Batch, a.Phase)
	if err != nil {
		return Verdict{}, err
	}
	if a.Batch == "" {
		err = tracker.Redo(ctx, unit, a.Phase, d.By.Name)
	} else {
		err = tracker.RedoBatch(ctx, unit, a.Batch, a.Phase, d.By.Name)
	}
	if err == nil {
		err = d.Tracker.MarkSent(ctx, unit, comments, d.By.Name)
	}
	return d.one(ctx, err, ref, "repeats the phase "+a.Phase)
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

// Retry requeues what failed of a unit, or of a part of it.
type Retry struct {
	Part string `json:"part,omitempty"` // a batch, a screen or a topic; empty: all of the unit
	Note string `json:"note,omitempty"` // text for the agent or person who redoes the batch
}

func (a Retry) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	return d.Retry(ctx, []string{strings.TrimSuffix(unit+"/"+a.Part, "/")}, a.Note)
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
			switch {
			case f.Kind == string(flow.BatchUnit):
				n.Batch = f.Part
			case f.Phase == flow.QuestionPhase:
				n.Question = f.Part
			}
			err = d.Tracker.AddNote(ctx, f.Unit, n)
		}
		var comments []progress.LineComment
		if err == nil && f.Kind == string(flow.BatchUnit) {
			comments, err = d.noteComments(ctx, f.Unit, f.Part, f.Phase)
		}
		if err == nil {
			_, err = q.Retry(ctx, f.Item, d.By)
		}
		if err == nil {
			err = d.Tracker.MarkSent(ctx, f.Unit, comments, d.By.Name)
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

// RetryItem requeues a failed item. The note is for the agent, so only an item of a flow
// can have one.
func RetryItem(ctx context.Context, a *project.Project, it *lockkeeper.Item, note string, by lockkeeper.Actor) (*lockkeeper.Item, error) {
	q, err := job.Open(a)
	if err != nil {
		return nil, err
	}
	name := run.FlowOf(it)
	if name == "" {
		if note != "" {
			return nil, &lockkeeper.InputError{Field: "note", Value: note, Reason: "item " + it.ID + " belongs to no flow, so no agent reads it", Next: "leave it out"}
		}
		return q.Retry(ctx, it.ID, by)
	}
	d, err := Open(ctx, a, name, by)
	if err != nil {
		return nil, err
	}
	v, err := d.RetryItem(ctx, it, note)
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return nil, err
	}
	return q.Find(ctx, it.ID)
}

func (d *Decider) RetryItem(ctx context.Context, it *lockkeeper.Item, note string) (Verdict, error) {
	failed, err := conduct.Failures(ctx, d.App, d.Flow.Name)
	if err != nil {
		return Verdict{}, err
	}
	failed = slices.DeleteFunc(failed, func(f run.Failure) bool { return f.Item != it.ID })
	if len(failed) > 0 {
		return d.retry(ctx, failed, note)
	}
	q, err := job.Open(d.App)
	if err != nil {
		return Verdict{}, err
	}
	_, err = q.Retry(ctx, it.ID, d.By) // Retry refuses an item that has not failed
	work, _ := run.WorkOf(it)
	return d.one(ctx, err, planOf(work.Unit), "retries "+it.Workflow+" in phase "+it.Phase)
}
