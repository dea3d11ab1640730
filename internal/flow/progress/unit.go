package progress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// Only this package uses these documents.
const (
	decisionsDraft = "decisions.draft.json" // decisions while some are missing
	batchesDraft   = "batches.draft.json"   // proposed batches, which follow up gaps
	notesFile      = "notes.json"
	questionsFile  = "questions.json"
	commentsFile   = "comments.json"   // comments on lines of the batches
	failuresFile   = "failures.json"   // failures of several batches
	startedFile    = "started.json"    // records that work on the batch began
	excludedFile   = "excluded.json"   // records who excluded the screen
	exclusionsFile = "exclusions.json" // records who excluded the unit or its batches
)

// A Unit is the state of a unit, from its valid documents.
type Unit struct {
	Name      string          `json:"name"`
	Analysis  *flow.Analysis  `json:"analysis,omitempty"`
	Topics    []Topic         `json:"topics,omitempty"`
	Extract   *flow.Extract   `json:"extract,omitempty"`
	Synthesis *flow.Synthesis `json:"synthesis,omitempty"`
	Audit     *flow.Audit     `json:"audit,omitempty"`
	Items     []Item          `json:"items,omitempty"`     // the items of the audit, then those that people added
	Decisions *flow.Decisions `json:"decisions,omitempty"` // nil before every item is decided
	Plan      *flow.Plan      `json:"plan,omitempty"`
	Batches   []Batch         `json:"batches,omitempty"`  // the batches of the plan, then the proposed follow-up batches
	Warnings  []string        `json:"warnings,omitempty"` // warnings about the plan
	Malformed []Malformed     `json:"malformed,omitempty"`
	Documents []Document      `json:"papers,omitempty"` // all existing documents

	// AwaitsReview is true if the plan waits for approval.
	AwaitsReview bool `json:"awaits_review,omitempty"`

	Excluded *Exclusion `json:"excluded,omitempty"` // set if no run works on the unit
	Left     string     `json:"left,omitempty"`     // the phase that was next when the unit was excluded

	// Outputs holds the documents without a Go type, by file.
	Outputs map[string]json.RawMessage `json:"-"`

	phase  string // the next phase; empty: none
	status string

	folder *documents.Folder
	docs   unitDocs
}

type unitDocs struct {
	analysis  loaded[flow.Analysis]
	texts     map[string]*documents.Text // by slug
	extract   loaded[flow.Extract]
	synthesis loaded[flow.Synthesis]
	audit     loaded[flow.Audit]
	draft     loaded[flow.Decisions]
	decisions loaded[flow.Decisions]
	others    map[string]loaded[json.RawMessage] // by file
	plan      loaded[flow.Plan]
	proposed  loaded[flow.Plan]
	notes     loaded[notes]
	questions loaded[questions]
	comments  loaded[lineComments]
	failures  loaded[commonFailures]
	excluded  loaded[exclusions]
	batches   map[string]*batchDocs // by id
}

// Phase returns the name of the next phase, or "" if no phase is left.
func (u *Unit) Phase() string { return u.phase }

func (u *Unit) Status() string { return u.status }

func (u *Unit) Batch(id string) (*Batch, bool) {
	for i := range u.Batches {
		if u.Batches[i].ID == id {
			return &u.Batches[i], true
		}
	}
	return nil, false
}

func (u *Unit) Item(id string) (Item, bool) {
	at := slices.IndexFunc(u.Items, func(i Item) bool { return i.ID == id })
	if at < 0 {
		return Item{}, false
	}
	return u.Items[at], true
}

func (b *Tracker) Unit(ctx context.Context, name string) (*Unit, error) {
	return b.unit(ctx, name, "")
}

// BatchOf reads one batch and its unit without the other batches. The batch is nil if it does not
// exist. A plan may have hundreds of batches, and each one is read often. The state of other
// batches in the unit is not valid.
func (b *Tracker) BatchOf(ctx context.Context, unit, id string) (*Unit, *Batch, error) {
	u, err := b.unit(ctx, unit, id)
	if err != nil {
		return nil, nil, err
	}
	is, _ := u.Batch(id)
	return u, is, nil
}

// unit reads a unit with all batches, or with one batch and those in its After.
func (b *Tracker) unit(ctx context.Context, name, batch string) (*Unit, error) {
	u := &Unit{Name: name, folder: b.documents.Unit(name)}
	if err := u.read(ctx, b.flow, batch); err != nil {
		return nil, fmt.Errorf("unit %s: %w", name, err)
	}
	u.judge(b.flow)
	u.leaveOut(b.flow)
	return u, nil
}

func (u *Unit) read(ctx context.Context, f flow.Flow, only string) (err error) {
	r, p := newReader(ctx, u, u.folder), &u.docs
	defer func() { err = errors.Join(err, r.open.Close()) }()
	p.analysis = published[flow.Analysis](ctx, r, flow.AnalysisFile)
	p.extract = published[flow.Extract](ctx, r, flow.ExtractFile)
	p.synthesis = published[flow.Synthesis](ctx, r, flow.SynthesizeFile)
	p.audit = published[flow.Audit](ctx, r, flow.AuditFile)
	// A writer always creates one of the two files before it removes the other. If both seem
	// missing, the draft was created between the two reads.
	p.draft = private[flow.Decisions](ctx, r, decisionsDraft)
	p.decisions = published[flow.Decisions](ctx, r, flow.DecisionsFile)
	if p.draft.missing() && p.decisions.missing() {
		p.draft = private[flow.Decisions](ctx, r, decisionsDraft)
	}
	// Approved batches move from the draft into the plan. Reading the draft first misses none.
	p.proposed = private[flow.Plan](ctx, r, batchesDraft)
	p.plan = published[flow.Plan](ctx, r, flow.BatchesFile)
	p.notes = private[notes](ctx, r, notesFile)
	p.questions = private[questions](ctx, r, questionsFile)
	p.comments = private[lineComments](ctx, r, commentsFile)
	p.failures = private[commonFailures](ctx, r, failuresFile)
	p.excluded = private[exclusions](ctx, r, exclusionsFile)
	p.others = map[string]loaded[json.RawMessage]{}
	for _, phase := range f.Phases {
		if phase.Step == flow.Asking && !flow.HasSchema(phase.Output) {
			p.others[phase.Output] = load[json.RawMessage](ctx, r, phase.Output, phase.CheckOutput)
		}
	}
	if r.err == nil && p.analysis.value != nil {
		if slices.ContainsFunc(p.analysis.value.Topics, func(t flow.Topic) bool { return t.Slug == "" }) {
			*p.analysis.value = p.analysis.value.Slugged() // a person wrote the document
		}
		p.texts = map[string]*documents.Text{}
		for _, t := range p.analysis.value.Topics {
			text, err := u.folder.ReadText(ctx, t.Slug)
			if bad, ok := errors.AsType[*documents.MalformedError](err); ok {
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
				p.batches[batch.ID] = &batchDocs{}
			}
		}
	}
	return r.err
}

// wantedOf returns the ids of a batch and those in its After. Nil means all batches.
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

func (u *Unit) malformed(bad *documents.MalformedError) {
	u.Malformed = append(u.Malformed, Malformed{Path: bad.Path, Line: bad.Line, Reason: bad.Reason})
}

// A reader reads documents of one folder until an error occurs. It adds the documents, or a
// report of malformed ones, to the unit. Its user closes open.
type reader struct {
	unit   *Unit
	folder *documents.Folder
	open   *documents.Reading
	where  string // the folder, relative to that of the unit
	err    error
}

func newReader(ctx context.Context, u *Unit, folder *documents.Folder) *reader {
	return &reader{unit: u, folder: folder, open: folder.Open(ctx)}
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

func load[T any](ctx context.Context, r *reader, name string, check func(body []byte) error) (s loaded[T]) {
	s.folder, s.name = r.folder, name
	if r.err != nil {
		return s
	}
	doc, err := r.open.Read(ctx, name, check)
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
	d := Document{File: r.where + name, WrittenAt: doc.About.WrittenAt, By: doc.About.By}
	for _, raw := range doc.About.Calls {
		var call flow.Call
		if err := json.Unmarshal(raw, &call); err != nil { // the document itself is valid
			r.unit.malformed(&documents.MalformedError{Path: doc.Path, Reason: "cannot read a call in it: " + err.Error()})
			continue
		}
		d.Calls = append(d.Calls, call)
	}
	r.unit.Documents = append(r.unit.Documents, d)
	s.value, s.doc = value, doc
	return s
}
