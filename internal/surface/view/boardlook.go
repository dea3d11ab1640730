package view

import (
	"context"
	"slices"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/store"
)

// Board says where every unit of a flow is; "": of the one under way, or last.
func (l *Look) Board(ctx context.Context, flowName string) (*Board, error) {
	s, err := l.scene(ctx, flowName, func(*scene, store.Reader) error { return nil })
	if err != nil {
		return nil, err
	}
	p, err := l.papers(ctx, s.flow)
	if err != nil {
		return nil, err
	}
	b := &Board{Moment: s.Moment, Flow: s.flow, Phases: []BoardPhase{}, Units: []BoardUnit{}, Statuses: map[string]int{}, Problems: problems(p.problem)}
	for _, phase := range columns(p.flow) {
		b.Phases = append(b.Phases, BoardPhase{Name: phase.Name, Executor: string(phase.Executor)})
	}
	states := p.states(s.items)
	waiting := 0
	for i, u := range p.units {
		row := b.row(p.flow, u, states[i])
		b.Units = append(b.Units, row)
		b.Statuses[row.Status]++
		waiting += len(u.gates)
	}
	b.Run = s.line(states, waiting)
	return b, nil
}

// columns are the phases of a flow in which units are.
func columns(f flow.Flow) []flow.Phase {
	return slices.DeleteFunc(slices.Clone(f.Phases), func(p flow.Phase) bool { return p.Output == "" })
}

// row is a unit as the board has it.
func (b *Board) row(f flow.Flow, u *unit, at run.UnitState) BoardUnit {
	row := BoardUnit{Name: u.name, Status: at.Status, Pending: at.Pending, Since: at.Since, Item: at.Item, Note: at.Note, Error: at.Error,
		Gates: kindsOf(u.gates), Batches: []BoardBatch{}, Cells: make([]Mark, len(b.Phases))}
	if len(u.gates) > 0 {
		row.First = &u.gates[0].Ref
	}
	if u.Unit == nil {
		row.Unread = u.unread.Error()
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
	for i := range row.Cells {
		switch {
		case row.Status == flow.Complete || i < here:
			row.Cells[i] = MarkDone
		case i == here:
			row.Cells[i] = row.mark()
		default:
			row.Cells[i] = MarkToCome
		}
	}
	return row
}

// phaseOn is the phase that a unit is in; empty: it is complete.
func phaseOn(f flow.Flow, u *progress.Unit, at run.UnitState) string {
	if at.Status == flow.Complete {
		return ""
	}
	if at.Status == flow.Queued && at.Item != "" {
		return at.Pending
	}
	if at.Item != "" {
		return nameOf(f, at.Status, u.Phase())
	}
	// A unit whose batches are under way is where the first of them is that is not done.
	for _, b := range at.Batches {
		if !flow.IsDone(b.Status) && b.Item != "" {
			return phaseOf(f, b, u.Phase())
		}
	}
	return inTable(f, u.Phase())
}

// nameOf is the phase with a status.
func nameOf(f flow.Flow, status, otherwise string) string {
	for _, p := range f.Phases {
		if p.Status == status || p.Fixing != "" && p.Fixing == status {
			return p.Name
		}
	}
	return inTable(f, otherwise)
}

// inTable is a phase of the flow's table: a review and a landing end the last one.
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

// batchOn is a batch, or a screen, as the board has it.
func batchOn(f flow.Flow, u *progress.Unit, at run.BatchState) BoardBatch {
	b := BoardBatch{ID: at.ID, Status: at.Status, Pending: at.Pending, Since: at.Since, Item: at.Item, Note: at.Note, Error: at.Error, Blocked: at.Blocked, Mark: MarkToCome}
	known, ok := u.Batch(at.ID)
	next := ""
	if ok {
		b.Title, next = known.Title, known.Next
		if known.Landed != nil && known.Status != flow.NoChange {
			b.Landed, b.Undone = known.Landed.At, known.Landed.Undone != nil
		}
	}
	switch {
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

// mark is what the cell of the phase says that a unit is in.
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
