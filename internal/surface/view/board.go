package view

import (
	"context"
	"slices"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// Board is a table of phases and units. It shows the phase of every unit.
type Board struct {
	Moment
	Flow     string         `json:"flow"`
	Run      RunLine        `json:"run"`
	Phases   []BoardPhase   `json:"phases"`
	Units    []BoardUnit    `json:"units"`
	Statuses map[string]int `json:"statuses"` // number of units by status
	Problems []string       `json:"problems"` // what could not be read
}

type BoardPhase struct {
	Name     string `json:"name"`
	Executor string `json:"executor"` // built-in, agent, api, human or command
	Units    int    `json:"units"`    // number of units in this phase
}

type BoardUnit struct {
	run.UnitState
	Phase   string                `json:"phase,omitempty"` // empty: the unit is complete
	Cells   []Mark                `json:"cells"`           // one for each phase
	Open    map[progress.Kind]int `json:"gates"`
	First   *progress.Ref         `json:"first,omitempty"` // first open decision
	Batches []BoardBatch          `json:"batches"`

	Malformed []progress.Malformed `json:"malformed,omitempty"`
	Unread    string               `json:"unread,omitempty"` // why the documents of the unit cannot be read
}

// Mark is the content of a cell.
type Mark string

const (
	MarkDone    Mark = "done"
	MarkActive  Mark = "active"
	MarkQueued  Mark = "queued"
	MarkPerson  Mark = "person" // a person must decide
	MarkFailed  Mark = "failed"
	MarkWaiting Mark = "waiting" // the phase can start, and is not queued yet
	MarkToCome  Mark = "to_come"
	MarkSkipped Mark = "skipped"  // the unit is complete and had nothing to do in this phase
	MarkOut     Mark = "excluded" // a person excluded the unit or batch
)

// BoardBatch is a batch or screen of a unit.
type BoardBatch struct {
	run.BatchState
	Title  string    `json:"title,omitempty"`
	Phase  string    `json:"phase,omitempty"`
	Mark   Mark      `json:"mark"`
	Landed time.Time `json:"landed,omitzero"`
	Undone bool      `json:"undone,omitempty"`
}

// Board returns the phase of every unit of a flow; "": the current or last flow.
func (rd *Reader) Board(ctx context.Context, flowName string) (*Board, error) {
	s, p, err := rd.flowState(ctx, flowName, nil)
	if err != nil {
		return nil, err
	}
	b := &Board{Moment: s.Moment, Flow: s.flow, Phases: boardPhases(p.flow), Units: []BoardUnit{}, Statuses: map[string]int{}, Problems: problems(p.problem)}
	states := p.states(s.items)
	waiting := 0
	for i, u := range p.units {
		row := b.row(p.flow, u, states[i])
		b.Units = append(b.Units, row)
		b.Statuses[row.Status]++
		waiting += len(u.open)
	}
	b.Run = s.line(states, waiting)
	return b, nil
}

func boardPhases(f flow.Flow) []BoardPhase {
	list := []BoardPhase{}
	for _, phase := range columns(f) {
		list = append(list, BoardPhase{Name: phase.Name, Executor: string(phase.Executor)})
	}
	return list
}

// columns returns the phases that produce a document.
func columns(f flow.Flow) []flow.Phase {
	return slices.DeleteFunc(slices.Clone(f.Phases), func(p flow.Phase) bool { return p.Output == "" })
}

// row returns the row of a unit, and counts it in its column.
func (b *Board) row(f flow.Flow, u *unit, at run.UnitState) BoardUnit {
	row := BoardUnit{UnitState: at, Open: kindsOf(u.open), Batches: []BoardBatch{}, Cells: make([]Mark, len(b.Phases))}
	if len(u.open) > 0 {
		row.First = &u.open[0].Ref
	}
	if u.Unit == nil {
		row.Unread = u.err.Error()
		for i := range row.Cells {
			row.Cells[i] = MarkToCome
		}
		return row
	}
	row.Malformed = u.Malformed
	for _, state := range at.Batches {
		row.Batches = append(row.Batches, batchOn(f, u.Unit, state))
	}
	row.Phase = phaseOn(f, u.Unit, at)
	here := slices.IndexFunc(b.Phases, func(p BoardPhase) bool { return p.Name == row.Phase })
	if here >= 0 {
		b.Phases[here].Units++
	}
	phases := columns(f)
	for i := range row.Cells {
		switch {
		case row.Status == flow.Complete && skipped(u.Unit, phases[i]):
			row.Cells[i] = MarkSkipped
		case row.Status == flow.Complete || i < here:
			row.Cells[i] = MarkDone
		case row.Status == flow.Excluded:
			row.Cells[i] = MarkOut
		case i == here:
			row.Cells[i] = row.mark()
		default:
			row.Cells[i] = MarkToCome
		}
	}
	return row
}

// skipped reports whether a complete unit had nothing to do in a phase: no item to decide on, or none to
// plan and make batches for.
func skipped(u *progress.Unit, phase flow.Phase) bool {
	switch {
	case phase.Unit == flow.BatchUnit:
		return len(u.Batches) == 0
	case phase.Output == flow.DecisionsFile:
		return len(u.Items) == 0
	case phase.Output == flow.BatchesFile:
		return u.Plan == nil
	}
	return false
}

// phaseOn returns the phase of a unit, or "" if it is complete.
func phaseOn(f flow.Flow, u *progress.Unit, at run.UnitState) string {
	switch at.Status {
	case flow.Complete:
		return ""
	case flow.Excluded:
		return inTable(f, u.Left)
	}
	if at.Status == flow.Queued && at.Item != "" {
		return at.Pending
	}
	if at.Item != "" {
		return nameOf(f, at.Status, u.Phase())
	}
	// A unit with active batches is in the phase of the first that is not done.
	for _, b := range at.Batches {
		if !flow.IsDone(b.Status) && b.Item != "" {
			return phaseOf(f, b, u.Phase())
		}
	}
	return inTable(f, u.Phase())
}

func nameOf(f flow.Flow, status, otherwise string) string {
	for _, p := range f.Phases {
		if p.Status == status || p.Fixing != "" && p.Fixing == status {
			return p.Name
		}
	}
	return inTable(f, otherwise)
}

// inTable returns a phase of the flow. Review and landing belong to the last one.
func inTable(f flow.Flow, phase string) string {
	if phase == progress.ReviewPhase || phase == progress.LandPhase {
		return f.Phases[len(f.Phases)-1].Name
	}
	return phase
}

func phaseOf(f flow.Flow, b run.BatchState, otherwise string) string {
	if b.Status == flow.Queued {
		return nameOf(f, run.StatusIn(f, b.Pending), b.Pending)
	}
	return nameOf(f, b.Status, otherwise)
}

func batchOn(f flow.Flow, u *progress.Unit, at run.BatchState) BoardBatch {
	b := BoardBatch{BatchState: at, Mark: MarkToCome}
	known, ok := u.Batch(at.ID)
	next := ""
	if ok {
		b.Title, next = known.Title, known.Next
		if known.Landed != nil && known.Status != flow.NoChange {
			b.Landed, b.Undone = known.Landed.At, known.Landed.Undone != nil
		}
	}
	switch {
	case at.Status == flow.Excluded:
		b.Mark = MarkOut
		return b
	case flow.IsDone(at.Status):
		b.Mark = MarkDone
		return b
	case at.Status == flow.Failed:
		b.Mark = MarkFailed
	case at.Status == flow.Queued:
		b.Mark = MarkQueued
	case at.Item != "":
		b.Mark = MarkActive
	case ok && (known.AwaitsReview || !known.Approved):
		b.Mark = MarkPerson
	case len(at.Blocked) == 0:
		b.Mark = MarkWaiting
	}
	if b.Phase = phaseOf(f, at, next); at.Status == flow.Failed {
		b.Phase = inTable(f, next)
	}
	return b
}

func (row *BoardUnit) mark() Mark {
	has := func(m Mark) bool {
		return slices.ContainsFunc(row.Batches, func(b BoardBatch) bool { return b.Mark == m })
	}
	switch {
	case row.Status == flow.Failed:
		return MarkFailed
	case row.Item != "" && row.Status == flow.Queued:
		return MarkQueued
	case row.Item != "" || has(MarkActive):
		return MarkActive
	case row.First != nil:
		return MarkPerson
	case has(MarkQueued):
		return MarkQueued
	}
	return MarkWaiting
}
