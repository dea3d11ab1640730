package app

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/pipeline"
	"lockkeeper/lock"
)

// FlowReport is what a flow changed, what that cost, and what was refused.
type FlowReport struct {
	Flow      string          `json:"flow"`
	Run       *FlowRun        `json:"run,omitempty"` // the last one, if it is of this flow
	Units     []UnitReport    `json:"units"`
	Cost      Cost            `json:"cost"`     // of all runs of the flow
	RunCost   Cost            `json:"run_cost"` // of these, of the last run
	Phases    []PhaseCost     `json:"phases"`
	Decisions DecisionCount   `json:"decisions"`
	Gaps      []GapReport     `json:"gaps"`
	Failures  []FailureReport `json:"failures"`
	Rechecks  []RecheckReport `json:"rechecks"`
	Times     FlowTimes       `json:"times"`
}

// UnitReport is what became of a unit.
type UnitReport struct {
	Name      string        `json:"name"`
	Status    string        `json:"status"`
	Cost      Cost          `json:"cost"`
	Decisions DecisionCount `json:"decisions"`
	Batches   []BatchReport `json:"batches"`
}

// BatchReport is what became of a batch.
type BatchReport struct {
	ID      string       `json:"id"`
	Title   string       `json:"title,omitempty"`
	Status  string       `json:"status"`
	Summary string       `json:"summary,omitempty"`
	Files   []string     `json:"files"` // that it changes, or changed
	Fixes   int          `json:"fixes"`
	Landed  *flow.Landed `json:"landed,omitempty"`

	Tests    flow.CheckState `json:"tests,omitempty"`    // none: not run yet
	CI       flow.CheckState `json:"ci,omitempty"`       // none: not run yet
	Untested string          `json:"untested,omitempty"` // why nothing tested it
}

// LandedUntested reports whether the batch is in the tree and nothing tested it.
func (b *BatchReport) LandedUntested() bool {
	return b.Untested != "" && b.Landed != nil && b.Landed.Undone == nil && b.Status != flow.NoChange
}

// Cost is what calls of agents took.
type Cost struct {
	USD    float64       `json:"usd"`
	Tokens int64         `json:"tokens"`
	Calls  int           `json:"calls"`
	Failed int           `json:"failed_calls"`
	Took   time.Duration `json:"took"` // all calls one after the other
}

func (c *Cost) add(call flow.Call) {
	c.USD = math.Round((c.USD+call.USD)*1e6) / 1e6 // calls are priced in millionths
	c.Tokens += call.Tokens
	c.Calls++
	c.Took += call.Took
	if call.Error != "" {
		c.Failed++
	}
}

// PhaseCost is what a phase cost.
type PhaseCost struct {
	Phase string `json:"phase"`
	Cost
}

// DecisionCount counts decisions.
type DecisionCount struct {
	Todo   int `json:"todo"`
	Defer  int `json:"defer"`
	Reject int `json:"reject"`
	Open   int `json:"open"`
}

func (c *DecisionCount) add(more DecisionCount) {
	c.Todo, c.Defer, c.Reject, c.Open = c.Todo+more.Todo, c.Defer+more.Defer, c.Reject+more.Reject, c.Open+more.Open
}

// GapReport is a change that was refused.
type GapReport struct {
	Unit  string `json:"unit"`
	Batch string `json:"batch"`
	flow.Gap
}

// FailureReport is an item in the error state.
type FailureReport struct {
	Item   string    `json:"item"`
	Work   string    `json:"work"`
	Phase  string    `json:"phase"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// RecheckReport says that a batch was tested again.
type RecheckReport struct {
	Unit  string `json:"unit"`
	Batch string `json:"batch"`
	flow.Recheck
}

// FlowTimes is how the time of a flow was used.
type FlowTimes struct {
	First   time.Time     `json:"first,omitzero"` // the beginning of the first call
	Last    time.Time     `json:"last,omitzero"`  // the end of the last one
	Busy    time.Duration `json:"busy"`           // during which at least one agent worked
	Agents  float64       `json:"agents"`         // that worked at once in that time, on average
	Most    int           `json:"most_agents"`
	Queued  time.Duration `json:"queued"`  // that items waited before they started, all together
	Blocked time.Duration `json:"blocked"` // of that, because somebody else had their locks
}

// FlowReport gathers what a flow did. It changes nothing.
func (a *App) FlowReport(ctx context.Context, name string) (*FlowReport, error) {
	book, f, docs, err := a.Book(name)
	if err != nil {
		return nil, err
	}
	units, err := a.UnitsOf(ctx, f, docs)
	if err != nil {
		return nil, err
	}
	calls, err := a.Journal().Calls(f.Name)
	if err != nil {
		return nil, err
	}
	return a.FlowReportOf(ctx, f, units, calls, func(unit string) (*dossier.Unit, error) { return book.Unit(ctx, unit) })
}

// FlowReportOf is FlowReport for whoever has read the calls, and reads the units in their
// own way. An error of unit ends it.
func (a *App) FlowReportOf(ctx context.Context, f flow.Flow, units []string, calls []pipeline.PastCall, unit func(string) (*dossier.Unit, error)) (*FlowReport, error) {
	r := &FlowReport{Flow: f.Name, Units: []UnitReport{}, Phases: []PhaseCost{}, Gaps: []GapReport{}, Failures: []FailureReport{}, Rechecks: []RecheckReport{}}
	var err error
	if r.Run, err = a.CurrentRun(); err != nil {
		return nil, err
	}
	if r.Run != nil && r.Run.Flow != f.Name {
		r.Run = nil
	}
	costs := r.count(f, calls)
	units = slices.Clone(units)
	for unit := range costs { // one whose first document is still to come
		units = append(units, unit)
	}
	slices.Sort(units)
	for _, name := range slices.Compact(units) {
		u, err := unit(name)
		if err != nil {
			return nil, err
		}
		r.addUnit(u, costs[name])
	}
	return r, a.addItems(ctx, r, unit)
}

// count sums up the calls, and returns what each unit cost.
func (r *FlowReport) count(f flow.Flow, calls []pipeline.PastCall) map[string]Cost {
	units, phases := map[string]Cost{}, map[string]Cost{}
	for _, call := range calls {
		u, p := units[call.Unit], phases[call.Phase]
		u.add(call.Call)
		p.add(call.Call)
		units[call.Unit], phases[call.Phase] = u, p
		r.Cost.add(call.Call)
		if r.Run != nil && call.Run == r.Run.ID {
			r.RunCost.add(call.Call)
		}
	}
	place := func(phase string) int {
		return slices.IndexFunc(f.Phases, func(p flow.Phase) bool { return p.Name == phase || p.Prompt == phase })
	}
	for phase, cost := range phases {
		r.Phases = append(r.Phases, PhaseCost{Phase: phase, Cost: cost})
	}
	slices.SortFunc(r.Phases, func(a, b PhaseCost) int {
		return cmp.Or(cmp.Compare(place(a.Phase), place(b.Phase)), strings.Compare(a.Phase, b.Phase))
	})
	r.Times.busy(calls)
	return units
}

// busy finds how many agents worked at once, and when any did.
func (t *FlowTimes) busy(calls []pipeline.PastCall) {
	type edge struct {
		at   time.Time
		step int
	}
	var edges []edge
	var sum time.Duration
	for _, c := range calls {
		if c.Began.IsZero() {
			continue
		}
		edges = append(edges, edge{c.Began, 1}, edge{c.Began.Add(c.Took), -1})
		sum += c.Took
	}
	if len(edges) == 0 {
		return
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.step, b.step)) })
	t.First, t.Last = edges[0].at, edges[len(edges)-1].at
	now, since := 0, time.Time{}
	for _, e := range edges {
		if now == 0 {
			since = e.at
		}
		if now += e.step; now == 0 {
			t.Busy += e.at.Sub(since)
		}
		t.Most = max(t.Most, now)
	}
	if t.Busy > 0 {
		t.Agents = sum.Seconds() / t.Busy.Seconds()
	}
}

func (r *FlowReport) addUnit(u *dossier.Unit, cost Cost) {
	unit := UnitReport{Name: u.Name, Status: u.Status(), Cost: cost, Batches: []BatchReport{}}
	for _, item := range u.Items {
		switch item.Decision {
		case flow.Todo:
			unit.Decisions.Todo++
		case flow.Defer:
			unit.Decisions.Defer++
		case flow.Reject:
			unit.Decisions.Reject++
		default:
			unit.Decisions.Open++
		}
	}
	r.Decisions.add(unit.Decisions)
	for i := range u.Batches {
		b := &u.Batches[i]
		done := BatchReport{ID: b.ID, Title: b.Title, Status: b.Status, Files: []string{}, Landed: b.Landed}
		var again []flow.Recheck
		done.Summary = b.Summary()
		for _, f := range b.Files() {
			done.Files = append(done.Files, f.Path)
		}
		done.Untested = b.Untested()
		for state, c := range map[*flow.CheckState]*flow.Checked{&done.Tests: b.Tested, &done.CI: b.CI} {
			if c != nil {
				done.Fixes += c.Fixes
				*state = c.State
			}
		}
		if b.Landed != nil {
			done.Files = []string{}
			for _, f := range b.Landed.Files {
				done.Files = append(done.Files, f.Path)
			}
			again = b.Landed.Again
		}
		for _, recheck := range again {
			r.Rechecks = append(r.Rechecks, RecheckReport{Unit: u.Name, Batch: b.ID, Recheck: recheck})
		}
		for _, g := range b.Gaps() {
			r.Gaps = append(r.Gaps, GapReport{Unit: u.Name, Batch: b.ID, Gap: g.Gap})
		}
		unit.Batches = append(unit.Batches, done)
	}
	r.Units = append(r.Units, unit)
}

// addItems adds what the queue knows: what failed, and what waited.
func (a *App) addItems(ctx context.Context, r *FlowReport, unit func(string) (*dossier.Unit, error)) error {
	ids := map[string]bool{}
	var first uint64
	var open map[string][]*lockkeeper.Item
	err := a.store.View(ctx, func(read lockkeeper.Reader) (err error) {
		clear(ids)
		r.Times.Queued = 0
		if open, err = pipeline.OpenItems(read, r.Flow); err != nil {
			return err
		}
		return eachItem(read, "", func(it *lockkeeper.Item) bool {
			if pipeline.FlowOf(it) != r.Flow {
				return true
			}
			ids[it.ID], first = true, it.Seq
			if !it.DispatchedAt.IsZero() {
				r.Times.Queued += it.DispatchedAt.Sub(it.QueuedAt)
			}
			return true
		})
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	failed, err := pipeline.FailuresIn(open, unit)
	if err != nil {
		return err
	}
	for _, f := range failed {
		r.Failures = append(r.Failures, FailureReport{Item: f.Item, Work: f.Name(), Phase: f.Phase, Reason: f.Reason, At: f.At})
	}
	r.Times.Blocked, err = a.blockedFor(ctx, ids, first)
	return err
}

// blockedFor adds up how long items were blocked by locks: from when they were found to
// be, to when they had them. Of what the record has dropped nothing is known. First is the
// number of the first of them.
func (a *App) blockedFor(ctx context.Context, items map[string]bool, first uint64) (sum time.Duration, err error) {
	since := map[string]time.Time{}
	for after, page := first, itemPage; page == itemPage; {
		events, err := a.Locks.Events(ctx, lockkeeper.EventQuery{After: after, Limit: itemPage})
		if err != nil {
			return 0, err
		}
		page = len(events)
		for _, ev := range events {
			after = ev.Seq
			id := ev.Data[lock.ItemKey]
			began, blocked := since[id]
			switch {
			case ev.Kind == lockkeeper.EventBlocked && items[id] && !blocked:
				since[id] = ev.At
			case ev.Kind == lockkeeper.EventAcquired && blocked:
				sum += ev.At.Sub(began)
				delete(since, id)
			}
		}
	}
	return sum, nil
}
