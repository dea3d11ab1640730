package view

import (
	"context"
	"errors"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/rescue"
)

// Decision is everything known about one open or past decision. One of Topic, Item, Plan, Review,
// Gap and Failure is set, by its kind.
type Decision struct {
	Moment
	Flow         string `json:"flow"`
	OpenDecision        // only the reference and the title are set if the decision is not open
	Waits        bool   `json:"waits"`   // the decision is open
	Status       string `json:"status"`  // status of the decision's unit
	Purpose      string `json:"purpose"` // purpose of the decision's unit

	Topic   *progress.Topic         `json:"topic,omitempty"`
	Item    *ItemDetail             `json:"item,omitempty"`
	Plan    *PlanDetail             `json:"plan,omitempty"`
	Review  *BatchDetail            `json:"review,omitempty"`
	Gap     *GapDetail              `json:"gap,omitempty"`
	Failure *progress.CommonFailure `json:"failure,omitempty"`

	Questions []progress.Question  `json:"questions,omitempty"` // questions about the unit, with the answers of agents
	Malformed []progress.Malformed `json:"malformed,omitempty"` // malformed documents of the unit
	Unit      *progress.Unit       `json:"-"`                   // the unit, for the command line
}

// ItemDetail is an improvement with its batch.
type ItemDetail struct {
	progress.Item
	Batch  string `json:"batch,omitempty"`
	Status string `json:"status,omitempty"` // status of the batch
}

// PlanDetail is a unit with its decided items and its batches.
type PlanDetail struct {
	Items    []progress.Item        `json:"items"`
	Gone     []progress.DroppedItem `json:"gone"` // items that the audit dropped and a person can enable again
	Batches  []BatchDetail          `json:"batches"`
	Warnings []string               `json:"warnings"`
	Approved *flow.Approval         `json:"approved,omitempty"`
}

type BatchDetail struct {
	Unit    string `json:"unit"`
	Version string `json:"version,omitempty"` // version of the open review of the batch
	progress.Batch
	Status   string                 `json:"status"`          // from its documents and the queue
	Error    string                 `json:"error,omitempty"` // why it failed
	Does     []progress.Item        `json:"does"`            // the items of the batch
	Gaps     []progress.Gap         `json:"gaps"`
	Comments []progress.LineComment `json:"comments"`       // comments on lines of the diff
	Diff     *Diff                  `json:"diff,omitempty"` // nil if it was not requested
}

// GapDetail is a refused change with its diff.
type GapDetail struct {
	progress.Gap
	Batch string        `json:"batch"`
	Title string        `json:"title"` // title of the batch
	Kept  *rescue.Entry `json:"kept,omitempty"`
	Diff  *Diff         `json:"diff,omitempty"` // what the change does to its base
	Fit   *acts.Fit     `json:"fit,omitempty"`  // whether it applies to the file as it is now
	Plan  string        `json:"plan"`           // a plan for the flow tasks that makes the change, as YAML
}

// Diff is a set of changes, file by file.
type Diff struct {
	Files   []FileDiff `json:"files"`
	Added   int        `json:"added"` // number of added lines in all files
	Removed int        `json:"removed"`
}

type FileDiff struct {
	Path    string `json:"path"`
	Change  string `json:"change"`         // added, changed or deleted
	Text    string `json:"text"`           // unified diff
	Note    string `json:"note,omitempty"` // why there is no text: binary, too large or no longer kept
	Added   int    `json:"added"`          // number of added lines
	Removed int    `json:"removed"`
}

// Decision returns the details of one decision of a flow; "": the current or last flow.
func (rd *Reader) Decision(ctx context.Context, flowName string, ref progress.Ref) (*Decision, error) {
	s, p, err := rd.flowState(ctx, flowName, nil)
	if err != nil {
		return nil, err
	}
	u, known := p.find(ref.Unit)
	switch {
	case !known:
		return nil, &lockkeeper.InputError{Field: "unit", Value: ref.Unit, Reason: "the flow " + s.flow + " has no such unit", Next: "lockkeeper decide"}
	case u.Unit == nil:
		return nil, u.err
	}
	w, err := rd.weigher(ctx, p)
	if err != nil {
		return nil, err
	}
	at := p.state(u, s.items[u.name])
	d := &Decision{Moment: s.Moment, Flow: s.flow, OpenDecision: OpenDecision{Weighed: acts.Weighed{Decision: progress.Decision{Ref: ref}}}, Status: at.Status, Questions: u.Questions(), Malformed: u.Malformed, Unit: u.Unit}
	if u.Analysis != nil {
		d.Purpose = u.Analysis.Purpose
	}
	for _, g := range p.open() {
		if g.Ref == ref {
			d.OpenDecision, d.Waits = w.weigh(g), true
		}
	}
	if err := rd.fill(ctx, d, p, u.Unit, at); err != nil {
		return nil, err
	}
	return d, nil
}

// fill adds the fields of d that its kind of decision needs.
func (rd *Reader) fill(ctx context.Context, d *Decision, p *documents, u *progress.Unit, at run.UnitState) (err error) {
	missing := func() error {
		return &lockkeeper.InputError{Field: "reference", Value: d.Ref.String(), Reason: u.Name + " has no such " + string(d.Ref.Kind), Next: "lockkeeper decide show plan " + u.Name}
	}
	batch, known := u.Batch(d.Ref.Batch)
	switch d.Ref.Kind {
	case progress.TopicKind:
		for i := range u.Topics {
			if u.Topics[i].Slug == d.Ref.Topic {
				d.Topic = &u.Topics[i]
			}
		}
		if d.Topic == nil {
			return missing()
		}
		d.title(d.Topic.Prompt)
	case progress.ItemKind:
		item, ok := u.Item(d.Ref.Item)
		if !ok {
			return missing()
		}
		d.Item = &ItemDetail{Item: item}
		if b, ok := batchOf(u, item.ID); ok {
			d.Item.Batch, d.Item.Status = b.ID, stateOf(at, b).Status
		}
		d.title(item.Description)
	case progress.PlanKind:
		d.Plan = planDetail(u, at)
		d.title("the batches of " + u.Name)
	case progress.ReviewKind:
		if !known {
			return missing()
		}
		d.title(batch.Title)
		d.Review, err = reviewDetail(p, u, batch, stateOf(at, batch))
	case progress.FailureKind:
		f, known := u.CommonFailure(d.Ref.Failure)
		if !known {
			return missing()
		}
		d.title(f.Title())
		d.Failure = &f
	case progress.GapKind:
		if !known {
			return missing()
		}
		g, known := batch.Gap(d.Ref.Gap)
		if !known {
			return missing()
		}
		d.title(g.Path)
		d.Gap, err = rd.gapDetail(ctx, batch, g)
	default:
		return missing()
	}
	return err
}

// title sets the title of a decision that is not open.
func (d *Decision) title(text string) {
	if !d.Waits {
		d.Title = strings.Join(strings.Fields(text), " ")
	}
}

func planDetail(u *progress.Unit, at run.UnitState) *PlanDetail {
	d := &PlanDetail{Items: acts.OrEmpty(u.Items), Gone: acts.OrEmpty(u.DroppedItems()), Batches: []BatchDetail{}, Warnings: acts.OrEmpty(u.Warnings)}
	if u.Plan != nil {
		d.Approved = u.Plan.Approved
	}
	for i := range u.Batches {
		d.Batches = append(d.Batches, batchDetail(u, &u.Batches[i], stateOf(at, &u.Batches[i])))
	}
	return d
}

// reviewDetail returns the details of a batch, with its diff and the version of its open
// review.
func reviewDetail(p *documents, u *progress.Unit, b *progress.Batch, at run.WorkState) (*BatchDetail, error) {
	d := batchDetail(u, b, at)
	for _, g := range u.OpenDecisions() {
		if g.Ref.Kind == progress.ReviewKind && g.Ref.Batch == b.ID {
			d.Version = g.Version
		}
	}
	var err error
	d.Diff, err = diffOf(p, u.Name, b)
	return &d, err
}

// BatchChange is a batch with its diff.
type BatchChange struct {
	Moment
	Flow string `json:"flow"`
	BatchDetail
}

// BatchChange returns a batch of a unit with its diff. The flow "" is the current or last one.
func (rd *Reader) BatchChange(ctx context.Context, flowName, unit, batch string) (*BatchChange, error) {
	s, p, err := rd.flowState(ctx, flowName, nil)
	if err != nil {
		return nil, err
	}
	u, b, known := p.batch(unit, batch)
	if !known {
		return nil, &lockkeeper.InputError{Field: "batch", Value: unit + "/" + batch, Reason: "the flow " + s.flow + " has no such batch", Next: "lockkeeper status"}
	}
	d, err := reviewDetail(p, u.Unit, b, stateOf(p.state(u, s.items[u.name]), b))
	if err != nil {
		return nil, err
	}
	return &BatchChange{Moment: s.Moment, Flow: s.flow, BatchDetail: *d}, nil
}

// stateOf returns the state of a batch, from that of its unit.
func stateOf(at run.UnitState, b *progress.Batch) run.WorkState {
	for _, s := range at.Batches {
		if s.ID == b.ID {
			return s.WorkState
		}
	}
	return run.WorkState{Status: b.Status}
}

func batchDetail(u *progress.Unit, b *progress.Batch, at run.WorkState) BatchDetail {
	return BatchDetail{Unit: u.Name, Batch: *b, Status: at.Status, Error: at.Error, Does: itemsOf(u, b), Gaps: acts.OrEmpty(b.Gaps()), Comments: acts.OrEmpty(u.Comments(b.ID))}
}

func diffOf(p *documents, unit string, b *progress.Batch) (*Diff, error) {
	d := &Diff{Files: []FileDiff{}}
	for _, f := range b.Files() {
		text, note, err := acts.FileDifference(p.tracker, unit, b.ID, f)
		if err != nil {
			return nil, err
		}
		d.add(f.Path, f.Old.Exists(), f.New.Exists(), text, note)
	}
	return d, nil
}

func (d *Diff) add(path string, was, is bool, text, note string) {
	f := FileDiff{Path: path, Change: "changed", Text: text, Note: note}
	switch {
	case !was:
		f.Change = "added"
	case !is:
		f.Change = "deleted"
	}
	head := true
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "@@"):
			head = false
		case head:
		case line[0] == '+':
			f.Added++
		case line[0] == '-':
			f.Removed++
		}
	}
	d.Files = append(d.Files, f)
	d.Added, d.Removed = d.Added+f.Added, d.Removed+f.Removed
}

func (rd *Reader) gapDetail(ctx context.Context, b *progress.Batch, g progress.Gap) (*GapDetail, error) {
	d := &GapDetail{Gap: g, Batch: b.ID, Title: b.Title}
	change := ""
	if g.Rescue != "" {
		e, err := rd.project.Shelf().Get(g.Rescue)
		switch {
		case errors.As(err, new(*lockkeeper.InputError)): // the entry was dropped meanwhile
		case err != nil:
			return nil, err
		default:
			if d.Diff, d.Fit, err = rd.keptDiff(ctx, e); err != nil {
				return nil, err
			}
			d.Kept, change = &e, d.Fit.Text
		}
	}
	var err error
	d.Plan, err = b.PlanOf(g, change)
	return d, err
}

// keptDiff compares a kept change with what it was based on, and with the file as it is now.
func (rd *Reader) keptDiff(ctx context.Context, e rescue.Entry) (d *Diff, fit *acts.Fit, err error) {
	f, err := acts.FitOf(ctx, rd.project, e)
	d = &Diff{}
	d.add(e.Path, e.Base.Exists(), !e.Delete, f.Text, f.Note)
	return d, &f, err
}
