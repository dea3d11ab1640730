package run

import (
	"context"
	"slices"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// Expected is the work that a run knows, with the time that it takes.
type Expected struct {
	Items []ExpectedItem
	Slots int // concurrent agents
	Tests int // concurrent tests
	Calls int // the recorded calls from which the times come
	Later int // units with later work that is not known yet

	Spread float64 // as in Durations
}

// An ExpectedItem is one item of the queue.
type ExpectedItem struct {
	Name, Kind, Phase, Project string
	Took
	Reads, Writes []string
	After         []string // names of the items that come first
}

// baselineItem is the name of the tests before the first batch.
const baselineItem = "+baseline"

// Expect returns the work that the run will do before it needs a person.
func (p *Pipeline) Expect(ctx context.Context) (*Expected, error) {
	st, units, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	e := &Expected{Slots: p.opt.Limits.Agents, Tests: p.opt.Limits.Tests, Calls: p.durations.Calls, Spread: p.durations.Spread}
	var before []string
	if took, err := p.baselineTakes(ctx); err != nil {
		return nil, err
	} else if took > 0 {
		before = []string{baselineItem}
		e.Items = append(e.Items, ExpectedItem{Name: baselineItem, Phase: p.opt.Flow.FirstOfBatch(), Took: Took{Tests: took}})
	}
	for i, u := range units {
		switch batches := p.upcoming(u); {
		case u.AwaitsReview:
			e.Later++
		case len(batches) > 0:
			p.expectBatches(e, u, batches, st.Units[i], before)
		case !flow.IsDone(u.Status()) && (st.Units[i].Status != flow.Failed || p.opt.Retry):
			p.expectPhases(e, u, st.Units[i])
		}
	}
	if len(e.Items) == len(before) {
		e.Items = nil // no batch will start the tests
	}
	return e, nil
}

// expectBatches adds the batches that can run, without those that wait for a person, for a failed
// batch, or for one that the run does not include.
func (p *Pipeline) expectBatches(e *Expected, u *progress.Unit, batches []progress.Batch, state UnitState, before []string) {
	out := map[string]bool{}
	for _, b := range batches {
		failed := slices.ContainsFunc(state.Batches, func(s BatchState) bool { return s.ID == b.ID && s.Status == flow.Failed })
		if !b.Approved || b.AwaitsReview || failed && !p.opt.Retry || !p.wants(Work{Unit: u.Name, Kind: string(flow.BatchUnit), Part: b.ID}) {
			out[b.ID] = true
		}
	}
	waits := func(b progress.Batch) bool {
		return !out[b.ID] && slices.ContainsFunc(b.After, func(id string) bool { return out[id] })
	}
	for i := slices.IndexFunc(batches, waits); i >= 0; i = slices.IndexFunc(batches, waits) {
		out[batches[i].ID] = true
	}
	open := slices.DeleteFunc(batches, func(b progress.Batch) bool { return out[b.ID] })
	for _, b := range open {
		w := Work{Unit: u.Name, Kind: string(flow.BatchUnit), Part: b.ID}
		queued, _, _ := p.opt.Flow.PhaseQueued(p.queuedIn(&b))
		it := ExpectedItem{Name: w.Name(), Kind: w.Kind, Phase: p.queuedIn(&b), Project: moduleOf(u.Name), Took: p.batchTakes(w, queued.Name), Writes: b.WriteTargets, After: slices.Clone(before)}
		if p.opt.LockReads {
			it.Reads = b.Reads
		}
		for _, first := range open {
			if slices.Contains(b.After, first.ID) {
				it.After = append(it.After, Work{Unit: u.Name, Part: first.ID}.Name())
			}
		}
		e.Items = append(e.Items, it)
	}
}

// expectPhases adds the phases of a unit up to the first one that people carry out, or whose work an
// agent plans.
func (p *Pipeline) expectPhases(e *Expected, u *progress.Unit, state UnitState) {
	due := false
	var before []string
	for _, phase := range p.opt.Flow.Phases {
		if due = due || phase.Name == u.Phase(); !due {
			continue
		}
		if phase.Unit == flow.BatchUnit || phase.Executor == flow.Human && p.opt.Auto == nil || phase.Step == flow.Researching && p.opt.Research == nil {
			e.Later++
			return
		}
		took := p.phaseTakes(phase)
		if took == (Took{}) || phase.Step == flow.Researching { // the topics of a unit are not known
			continue
		}
		parts := []string{phase.Name}
		if phase.Unit == flow.Screen {
			parts = nil
			for _, b := range state.Batches {
				if b.kind == flow.Screen && !flow.IsDone(b.Status) {
					parts = append(parts, b.ID)
				}
			}
		}
		var items []string
		for _, part := range parts {
			name := u.Name + "/" + part
			items = append(items, name)
			e.Items = append(e.Items, ExpectedItem{Name: name, Kind: string(phase.Unit), Phase: phase.Name, Project: moduleOf(u.Name), Took: took, After: before})
		}
		if items != nil {
			before = items
		}
	}
}

// baselineTakes returns how long the tests before the first batch take; 0: they do not run, or
// nothing is known.
func (p *Pipeline) baselineTakes(ctx context.Context) (time.Duration, error) {
	commands, _ := p.commonTests()
	if p.opt.Baseline == BaselineOff || len(commands) == 0 || !p.usesTests(commands) {
		return 0, nil
	}
	stored, err := ReadBaseline(p.opt.BaselineFile)
	if err != nil || stored == nil {
		return 0, nil // takeBaseline reports the error
	}
	key, err := p.baselineKey(ctx, commands)
	if err != nil || p.knows(stored, commands, key) {
		return 0, err
	}
	return time.Duration(stored.Tests.Seconds * float64(time.Second)), nil
}
