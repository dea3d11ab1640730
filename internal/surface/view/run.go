package view

import (
	"context"
	"errors"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/report"
	"lockkeeper/internal/flow/run"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// A Run is the result of a run so far, with its cost.
type Run struct {
	Moment
	Line     RunLine        `json:"line"`
	Report   *report.Report `json:"report"`
	Cost     Cost           `json:"cost"`
	Refused  []RefusedWrite `json:"refused"`  // the newest first
	Landings []Landing      `json:"landings"` // the newest first
	More     bool           `json:"more"`     // there are earlier landings
	Problems []string       `json:"problems"` // what could not be read

	Machines []fleet.Machine `json:"machines,omitempty"` // those that share the calls, the conductor first
}

// With returns a copy of r with more problems. r itself is shared and does not change.
func (r Run) With(problems []string) *Run {
	r.Problems = slices.Concat(r.Problems, problems)
	return &r
}

// RefusedWrite is a write that the gate or a grant refused.
type RefusedWrite struct {
	At     time.Time `json:"at"`
	Path   string    `json:"path"`
	Name   string    `json:"name"` // name of the work, or the holder
	Reason string    `json:"reason"`
	Rescue string    `json:"rescue,omitempty"` // id of the kept content
	Kept   bool      `json:"kept"`             // the content is still kept
}

// A Landing is one commit by the gate.
type Landing struct {
	Seq      uint64    `json:"landing"`
	At       time.Time `json:"at"`
	Holder   string    `json:"holder"`
	Name     string    `json:"name"` // name of the work, or the holder
	Unit     string    `json:"unit,omitempty"`
	Batch    string    `json:"batch,omitempty"`
	State    string    `json:"state"` // decided, committed or undone
	Paths    []string  `json:"paths"`
	Commit   string    `json:"commit,omitempty"` // git commit
	Undoes   uint64    `json:"undoes,omitempty"`
	UndoneBy uint64    `json:"undone_by,omitempty"`
	Undo     Act       `json:"undo"` // refused if a later landing builds on this one, or its originals are gone
}

// LandingsQuery selects a page of landings.
type LandingsQuery struct {
	Before uint64 // the Next of the previous page; 0: the newest
	Limit  int    // default 100
	Path   string
}

type Landings struct {
	Moment
	Landings []Landing `json:"landings"`       // the newest first
	Next     uint64    `json:"next,omitempty"` // 0: this page is the last
}

// These constants limit the lists of a Run.
const (
	landingsShown = 25
	refusedShown  = 100
	refusedRead   = 20_000 // events searched for refused writes
)

// Run returns the results of a flow; "": the current or last flow.
func (rd *Reader) Run(ctx context.Context, flowName string) (*Run, error) {
	return share(ctx, &rd.shared, "run "+flowName, func(ctx context.Context) (*Run, error) { return rd.run(ctx, flowName) })
}

func (rd *Reader) run(ctx context.Context, flowName string) (*Run, error) {
	v := &Run{}
	s, p, err := rd.flowState(ctx, flowName, func(_ *snapshot, r store.Reader) (err error) {
		v.Refused, err = refusedIn(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	states := p.states(s.items)
	v.Moment, v.Line = s.Moment, s.line(states, len(p.open()))
	v.Problems = problems(p.problem)
	if v.Cost, err = rd.cost(s, p, states); err != nil {
		v.Problems = append(v.Problems, "the cost: "+err.Error())
	}
	if err := rd.report(ctx, v, p); err != nil {
		return nil, err
	}
	waitingIn(v.Report, states)
	if v.Machines, err = conduct.Machines(ctx, rd.project); err != nil {
		v.Problems = append(v.Problems, "the machines: "+err.Error())
	}
	if err := rd.markKept(ctx, v.Refused); err != nil {
		v.Problems = append(v.Problems, "rescued changes: "+err.Error())
	}
	page, err := rd.Landings(ctx, LandingsQuery{Limit: landingsShown})
	if err != nil {
		return nil, err
	}
	v.Landings, v.More = page.Landings, page.Next != 0
	return v, nil
}

// report adds the facts of the flow's report. Units that cannot be read are problems.
func (rd *Reader) report(ctx context.Context, v *Run, p *documents) error {
	calls, err := rd.journal.Calls(p.flow.Name)
	if err != nil {
		v.Problems = append(v.Problems, "the cost of units: "+err.Error())
	}
	var units []string
	for _, u := range p.units {
		switch {
		case u.Unit == nil:
			v.Problems = append(v.Problems, u.err.Error())
		case len(u.Documents)+len(u.Malformed)+len(u.Batches) > 0:
			units = append(units, u.name)
		}
	}
	v.Report, err = report.Of(ctx, rd.project, p.flow, units, calls, func(name string) (*progress.Unit, error) {
		if u, known := p.find(name); known && u.Unit != nil {
			return u.Unit, nil
		}
		return &progress.Unit{Name: name}, nil
	})
	return err
}

// waitingIn gives batches that have not started the status of their item, because documents
// say only which phase is next.
func waitingIn(r *report.Report, states []run.UnitState) {
	for i := range r.Units {
		at := slices.IndexFunc(states, func(s run.UnitState) bool { return s.Name == r.Units[i].Name })
		if at < 0 {
			continue
		}
		for _, s := range states[at].Batches {
			b := slices.IndexFunc(r.Units[i].Batches, func(b report.Batch) bool { return b.ID == s.ID })
			switch {
			case b < 0 || r.Units[i].Batches[b].Failed:
			case len(s.Blocked) > 0:
				r.Units[i].Batches[b].Status = "waiting"
			case s.Status == flow.Queued, s.Status == flow.AwaitingReview:
				r.Units[i].Batches[b].Status = s.Status
			}
		}
	}
}

// refusedIn lists recently refused writes, newest first.
func refusedIn(r store.Reader) ([]RefusedWrite, error) {
	events, err := latest(r, store.EventQuery{}, refusedShown, refusedRead, func(ev lockkeeper.Event) bool { return ev.Kind == lockkeeper.EventGap })
	if err != nil {
		return nil, err
	}
	known, list := names{}, []RefusedWrite{}
	for _, ev := range events {
		if err := known.in(r, ev); err != nil {
			return nil, err
		}
		list = append(list, RefusedWrite{At: ev.At, Path: ev.Data["path"], Name: known.of(ev.Holder, sched.ItemID(ev)), Reason: ev.Reason, Rescue: ev.Data["rescue"]})
	}
	return list, nil
}

func (rd *Reader) markKept(ctx context.Context, list []RefusedWrite) error {
	entries, err := rd.rescued(ctx)
	there := map[string]bool{}
	for _, e := range entries {
		there[e.ID] = true
	}
	for i := range list {
		list[i].Kept = there[list[i].Rescue]
	}
	return err
}

// Landings lists landings, newest first.
func (rd *Reader) Landings(ctx context.Context, q LandingsQuery) (*Landings, error) {
	v := &Landings{}
	limit := pageLimit(q.Limit)
	var found []*lockkeeper.Landing
	known := names{}
	var err error
	v.Moment, err = rd.at(ctx, func(r store.Reader) (err error) {
		if found, err = r.Landings(store.LandingQuery{Path: q.Path, Before: q.Before, Limit: limit + 1, Latest: true}); err != nil {
			return err
		}
		if v.Next = 0; len(found) > limit {
			found, v.Next = found[:limit], found[limit-1].Seq
		}
		return known.landers(r, found)
	})
	if err != nil {
		return nil, err
	}
	v.Landings, err = rd.landings(ctx, found, known)
	return v, err
}

// landers looks up the names of the holders of landings.
func (n names) landers(r store.Reader, found []*lockkeeper.Landing) error {
	for _, ln := range found {
		if err := n.look(r, ln.Holder); err != nil {
			return err
		}
	}
	return nil
}

func (rd *Reader) landingsOf(ctx context.Context, seqs []uint64) ([]Landing, error) {
	var found []*lockkeeper.Landing
	known := names{}
	_, err := rd.at(ctx, func(r store.Reader) error {
		found = nil
		for _, seq := range seqs {
			list, err := r.Landings(store.LandingQuery{Seq: seq, Limit: 1})
			if err != nil {
				return err
			}
			found = append(found, list...)
		}
		return known.landers(r, found)
	})
	if err != nil {
		return nil, err
	}
	return rd.landings(ctx, found, known)
}

// landings adds names, batches and whether each landing can be undone.
func (rd *Reader) landings(ctx context.Context, found []*lockkeeper.Landing, known names) ([]Landing, error) {
	batches, err := rd.landedBatches(ctx)
	if err != nil {
		return nil, err
	}
	g, closed := rd.project.Gate() // without the gate no landing can be undone
	list := []Landing{}
	for _, ln := range found {
		v := Landing{Seq: ln.Seq, At: ln.At, Holder: ln.Holder, Name: known.of(ln.Holder, ln.Holder), State: ln.State.String(), Paths: []string{}, Undoes: ln.Undoes,
			Undo: Act{Name: "undo", Target: itoa(ln.Seq), Command: "lockkeeper undo " + itoa(ln.Seq)}}
		for _, c := range ln.Changes {
			v.Paths = append(v.Paths, c.Path)
		}
		if b, ok := batches[ln.Seq]; ok {
			v.Unit, v.Batch, v.Commit = b.unit, b.batch, b.commit
		}
		if closed != nil {
			v.Undo.Refused = closed.Error()
		} else if err := v.judge(ctx, g); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// judge adds whether the landing can be undone.
func (v *Landing) judge(ctx context.Context, g *gate.Gate) (err error) {
	if v.UndoneBy, err = g.UndoneBy(ctx, v.Seq); err != nil {
		return err
	}
	var refused *lockkeeper.RefusedError
	switch err := g.CanUndo(ctx, v.Seq); {
	case err == nil:
	case errors.As(err, &refused):
		v.Undo.Refused = refused.Reason
	default:
		v.Undo.Refused = err.Error()
	}
	return nil
}

type landedBatch struct{ unit, batch, commit string }

func (rd *Reader) landedBatches(ctx context.Context) (map[uint64]landedBatch, error) {
	p, err := rd.lastDocuments(ctx)
	if err != nil {
		return nil, err
	}
	batches := map[uint64]landedBatch{}
	for u, b := range p.eachBatch {
		if b.Landed == nil {
			continue
		}
		for _, seq := range b.Landed.Landings {
			batches[seq] = landedBatch{u.name, b.ID, b.Landed.Commit}
		}
	}
	return batches, nil
}
