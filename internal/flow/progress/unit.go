package progress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/sidecar"
)

// Documents of this package alone, beside those of the flow.
const (
	decisionsDraft = "decisions.draft.json" // decisions while some are missing
	batchesDraft   = "batches.draft.json"   // batches that were thought of while others run
	notesFile      = "notes.json"
	startedFile    = "started.json"  // of a batch
	excludedFile   = "excluded.json" // of a screen
)

// Unit is where a unit stands: what of its documents counts.
type Unit struct {
	Name      string          `json:"name"`
	Analysis  *flow.Analysis  `json:"analysis,omitempty"`
	Topics    []Topic         `json:"topics,omitempty"`
	Extract   *flow.Extract   `json:"extract,omitempty"`
	Synthesis *flow.Synthesis `json:"synthesis,omitempty"`
	Audit     *flow.Audit     `json:"audit,omitempty"`
	Items     []Item          `json:"items,omitempty"`     // of the audit, then those that people added
	Decisions *flow.Decisions `json:"decisions,omitempty"` // nil before every item is decided
	Plan      *flow.Plan      `json:"plan,omitempty"`
	Batches   []Batch         `json:"batches,omitempty"`  // of the plan, then those that wait to be taken up into it
	Warnings  []string        `json:"warnings,omitempty"` // what is unwise in the plan
	Malformed []Malformed     `json:"malformed,omitempty"`
	Documents []Document      `json:"papers,omitempty"` // of every document that is there

	// AwaitsReview: the batches are planned, and a person has to agree.
	AwaitsReview bool `json:"awaits_review,omitempty"`

	// Outputs holds the documents that have no type of their own, by file.
	Outputs map[string]json.RawMessage `json:"-"`

	phase  string // that comes next; empty: none
	status string

	folder *sidecar.Folder
	docs   unitDocs
}

// unitDocs are the documents of a unit, whether they count or not.
type unitDocs struct {
	analysis  loaded[flow.Analysis]
	texts     map[string]*sidecar.Text // by slug
	extract   loaded[flow.Extract]
	synthesis loaded[flow.Synthesis]
	audit     loaded[flow.Audit]
	draft     loaded[flow.Decisions]
	decisions loaded[flow.Decisions]
	others    map[string]loaded[json.RawMessage] // by file
	plan      loaded[flow.Plan]
	proposed  loaded[flow.Plan]
	notes     loaded[notes]
	batches   map[string]*batchDocs // by id
}

// Phase names the phase that comes next, empty if there is none.
func (u *Unit) Phase() string { return u.phase }

// Status is the status that goes with it.
func (u *Unit) Status() string { return u.status }

// Batch finds a batch by its id.
func (u *Unit) Batch(id string) (*Batch, bool) {
	for i := range u.Batches {
		if u.Batches[i].ID == id {
			return &u.Batches[i], true
		}
	}
	return nil, false
}

// Item finds an item by its id.
func (u *Unit) Item(id string) (Item, bool) {
	at := slices.IndexFunc(u.Items, func(i Item) bool { return i.ID == id })
	if at < 0 {
		return Item{}, false
	}
	return u.Items[at], true
}

// since is when a document was written, which is since when its successor is awaited.
func since(doc *sidecar.Doc) time.Time {
	if doc == nil {
		return time.Time{}
	}
	return doc.About.WrittenAt
}

// Unit reads all that is known of a unit.
func (b *Tracker) Unit(ctx context.Context, name string) (*Unit, error) {
	return b.unit(ctx, name, "")
}

// BatchOf reads all that is known of one batch, and of its unit what concerns it: a plan may
// have hundreds of batches, and each of them is read often. Nil: the unit has no such
// batch. What the unit says of other batches does not count.
func (b *Tracker) BatchOf(ctx context.Context, unit, id string) (*Unit, *Batch, error) {
	u, err := b.unit(ctx, unit, id)
	if err != nil {
		return nil, nil, err
	}
	is, _ := u.Batch(id)
	return u, is, nil
}

// unit reads a unit, with all of its batches or with one and those it comes after.
func (b *Tracker) unit(ctx context.Context, name, batch string) (*Unit, error) {
	u := &Unit{Name: name, folder: b.sidecar.Unit(name)}
	if err := u.read(ctx, b.flow, batch); err != nil {
		return nil, fmt.Errorf("unit %s: %w", name, err)
	}
	u.judge(b.flow)
	return u, nil
}

// read reads the documents and judges nothing.
func (u *Unit) read(ctx context.Context, f flow.Flow, only string) error {
	r, p := &reader{unit: u, folder: u.folder}, &u.docs
	p.analysis = published[flow.Analysis](ctx, r, flow.AnalysisFile)
	p.extract = published[flow.Extract](ctx, r, flow.ExtractFile)
	p.synthesis = published[flow.Synthesis](ctx, r, flow.SynthesizeFile)
	p.audit = published[flow.Audit](ctx, r, flow.AuditFile)
	// Of the draft and the decisions each is written before the other one goes, so whoever
	// finds neither looks once more for the draft.
	p.draft = private[flow.Decisions](ctx, r, decisionsDraft)
	p.decisions = published[flow.Decisions](ctx, r, flow.DecisionsFile)
	if p.draft.missing() && p.decisions.missing() {
		p.draft = private[flow.Decisions](ctx, r, decisionsDraft)
	}
	// Batches go from the draft into the plan: in this order none is missed on the way.
	p.proposed = private[flow.Plan](ctx, r, batchesDraft)
	p.plan = published[flow.Plan](ctx, r, flow.BatchesFile)
	p.notes = private[notes](ctx, r, notesFile)
	p.others = map[string]loaded[json.RawMessage]{}
	for _, phase := range f.Phases {
		if phase.Step == flow.Asking && !flow.HasSchema(phase.Output) {
			p.others[phase.Output] = load[json.RawMessage](ctx, r, phase.Output, phase.CheckOutput)
		}
	}
	if r.err == nil && p.analysis.value != nil {
		if slices.ContainsFunc(p.analysis.value.Topics, func(t flow.Topic) bool { return t.Slug == "" }) {
			*p.analysis.value = p.analysis.value.Slugged() // a person wrote it
		}
		p.texts = map[string]*sidecar.Text{}
		for _, t := range p.analysis.value.Topics {
			text, err := u.folder.ReadText(ctx, t.Slug)
			if bad := (*sidecar.MalformedError)(nil); errors.As(err, &bad) {
				u.malformed(bad)
			} else if err != nil {
				return err
			}
			p.texts[t.Slug] = text
		}
	}
	p.batches = map[string]*batchDocs{}
	for _, plan := range []*flow.Plan{p.plan.value, p.proposed.value} {
		if plan == nil {
			continue
		}
		wanted := wantedOf(plan, only)
		for _, batch := range plan.Batches {
			if wanted == nil || slices.Contains(wanted, batch.ID) {
				p.batches[batch.ID] = r.batch(ctx, f, batch.ID)
			} else {
				p.batches[batch.ID] = &batchDocs{folder: u.folder.Sub("batches", batch.ID)}
			}
		}
	}
	return r.err
}

// wantedOf is a batch and those it comes after; nil: all.
func wantedOf(plan *flow.Plan, only string) []string {
	if only == "" {
		return nil
	}
	wanted := []string{only}
	for _, batch := range plan.Batches {
		if batch.ID == only {
			wanted = append(wanted, batch.After...)
		}
	}
	return wanted
}

func (u *Unit) malformed(bad *sidecar.MalformedError) {
	u.Malformed = append(u.Malformed, Malformed{Path: bad.Path, Line: bad.Line, Reason: bad.Reason})
}

// reader reads documents of one folder of a unit, until one cannot be read, and notes how
// they came to be or what is wrong with them.
type reader struct {
	unit   *Unit
	folder *sidecar.Folder
	where  string // the folder, from that of the unit
	err    error
}

// published reads a document that has a schema.
func published[T any](ctx context.Context, r *reader, name string) loaded[T] {
	return load[T](ctx, r, name, func(body []byte) error { return flow.Check(name, body) })
}

// private reads a document that only this package writes.
func private[T any](ctx context.Context, r *reader, name string) loaded[T] {
	return load[T](ctx, r, name, func(body []byte) error {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		return d.Decode(new(T))
	})
}

// load reads a document. Missing and malformed ones have no value.
func load[T any](ctx context.Context, r *reader, name string, check func(body []byte) error) (s loaded[T]) {
	if r.err != nil {
		return s
	}
	doc, err := r.folder.Read(ctx, name, check)
	if errors.As(err, &s.bad) {
		r.unit.malformed(s.bad)
		return s
	}
	if err != nil || doc == nil {
		r.err = err
		return s
	}
	value := new(T)
	if err := json.Unmarshal(doc.Body, value); err != nil {
		r.err = fmt.Errorf("%s fits its schema and cannot be read: %w", doc.Path, err)
		return s
	}
	paper := Document{File: r.where + name, WrittenAt: doc.About.WrittenAt, By: doc.About.By}
	for _, raw := range doc.About.Calls {
		var call flow.Call
		if err := json.Unmarshal(raw, &call); err != nil { // the document itself is whole
			r.unit.malformed(&sidecar.MalformedError{Path: doc.Path, Reason: "cannot read a call in it: " + err.Error()})
			continue
		}
		paper.Calls = append(paper.Calls, call)
	}
	r.unit.Documents = append(r.unit.Documents, paper)
	return loaded[T]{value: value, doc: doc}
}
