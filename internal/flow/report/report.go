package report

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// A Report summarizes the changes of a flow, their cost, and refused changes.
type Report struct {
	Flow      string        `json:"flow"`
	Run       *conduct.Run  `json:"run,omitempty"`      // the last run, if it is of this flow
	Baseline  string        `json:"baseline,omitempty"` // the tests that failed on the tree with which that run started
	Units     []Unit        `json:"units"`
	Cost      Cost          `json:"cost"`     // the cost of all runs of the flow
	RunCost   Cost          `json:"run_cost"` // the cost of the last run
	Phases    []PhaseCost   `json:"phases"`
	Decisions DecisionCount `json:"decisions"`
	Gaps      []Gap         `json:"gaps"`
	Failures  []Failure     `json:"failures"`
	Rechecks  []Recheck     `json:"rechecks"`
	Times     Times         `json:"times"`
}

// A Unit summarizes a unit of the flow.
type Unit struct {
	Name      string        `json:"name"`
	Status    string        `json:"status"`
	Failed    bool          `json:"failed,omitempty"` // it waits for a retry
	Outcome   Outcome       `json:"outcome"`
	Cost      Cost          `json:"cost"`
	Decisions DecisionCount `json:"decisions"`
	Batches   []Batch       `json:"batches"`
}

type Batch struct {
	ID      string       `json:"id"`
	Title   string       `json:"title,omitempty"`
	Status  string       `json:"status"`
	Failed  bool         `json:"failed,omitempty"` // it waits for a retry
	Summary string       `json:"summary,omitempty"`
	Files   []string     `json:"files"` // the files that the batch changes or changed
	Fixes   int          `json:"fixes"`
	Landed  *flow.Landed `json:"landed,omitempty"`

	Tests    flow.CheckState `json:"tests,omitempty"`     // empty: not run yet
	CI       flow.CheckState `json:"ci,omitempty"`        // empty: not run yet
	Untested string          `json:"untested,omitempty"`  // why no command tested the batch
	AsBefore string          `json:"as_before,omitempty"` // what fails in the batch as it failed before the run
}

// LandedUntested reports whether the batch is in the tree and no command tested it.
func (b *Batch) LandedUntested() bool { return b.Untested != "" && b.isInTree() }

// LandedAsBefore reports whether the batch is in the tree and its tests fail as before the run.
func (b *Batch) LandedAsBefore() bool { return b.AsBefore != "" && b.isInTree() }

func (b *Batch) isInTree() bool {
	return b.Landed != nil && b.Landed.Undone == nil && b.Status != flow.NoChange
}

// A Cost is the sum of agent calls.
type Cost struct {
	USD    float64       `json:"usd"`
	Tokens int64         `json:"tokens"`
	Calls  int           `json:"calls"`
	Failed int           `json:"failed_calls"`
	Took   time.Duration `json:"took"` // the sum of all calls
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

type PhaseCost struct {
	Phase string `json:"phase"`
	Cost
}

type DecisionCount struct {
	Todo   int `json:"todo"`
	Defer  int `json:"defer"`
	Reject int `json:"reject"`
	Open   int `json:"open"`
}

func (c *DecisionCount) add(more DecisionCount) {
	c.Todo, c.Defer, c.Reject, c.Open = c.Todo+more.Todo, c.Defer+more.Defer, c.Reject+more.Reject, c.Open+more.Open
}

// A Gap is a change that was refused in a batch.
type Gap struct {
	Unit  string `json:"unit"`
	Batch string `json:"batch"`
	flow.Gap
}

// A Failure is an item in the error state.
type Failure struct {
	Item   string    `json:"item"`
	Work   string    `json:"work"`
	Phase  string    `json:"phase"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// A Recheck is a repeated test of a batch.
type Recheck struct {
	Unit  string `json:"unit"`
	Batch string `json:"batch"`
	flow.Recheck
}

// Times summarizes the time of a flow.
type Times struct {
	First   time.Time     `json:"first,omitzero"` // the beginning of the first call
	Last    time.Time     `json:"last,omitzero"`  // the end of the last call
	Busy    time.Duration `json:"busy"`           // time in which at least one agent worked
	Agents  float64       `json:"agents"`         // average number of agents at work during Busy
	Most    int           `json:"most_agents"`
	Queued  time.Duration `json:"queued"`  // the sum of waits before the start
	Blocked time.Duration `json:"blocked"` // the part of Queued that items waited for locks
}

func Read(ctx context.Context, a *project.Project, name string) (*Report, error) {
	tracker, f, docs, err := conduct.OpenDocuments(a, name)
	if err != nil {
		return nil, err
	}
	units, err := conduct.Units(ctx, f, docs)
	if err != nil {
		return nil, err
	}
	calls, err := conduct.Journal(a).Calls(f.Name)
	if err != nil {
		return nil, err
	}
	return Of(ctx, a, f, units, calls, func(unit string) (*progress.Unit, error) { return tracker.Unit(ctx, unit) })
}

// Of does the same as Read for a caller that has read the calls and can read a unit. It returns
// the first error of the function unit.
func Of(ctx context.Context, a *project.Project, f flow.Flow, units []string, calls []run.PastCall, unit func(string) (*progress.Unit, error)) (*Report, error) {
	r := &Report{Flow: f.Name, Units: []Unit{}, Phases: []PhaseCost{}, Gaps: []Gap{}, Failures: []Failure{}, Rechecks: []Recheck{}}
	var err error
	if r.Run, err = conduct.CurrentRun(a); err != nil {
		return nil, err
	}
	if r.Run != nil && r.Run.Flow != f.Name {
		r.Run = nil
	}
	if r.Baseline, err = r.Run.FailedBefore(a); err != nil {
		return nil, err
	}
	costs := r.count(f, calls)
	open, err := addItems(ctx, a, r, f, unit)
	if err != nil {
		return nil, err
	}
	units = slices.Clone(units)
	for unit := range costs { // includes units without a document
		units = append(units, unit)
	}
	slices.Sort(units)
	for _, name := range slices.Compact(units) {
		u, err := unit(name)
		if err != nil {
			return nil, err
		}
		r.addUnit(u, costs[name], run.Overlay{Flow: f}.Unit(u, open[name]))
	}
	return r, nil
}

// count sums up the calls and returns the cost of each unit.
func (r *Report) count(f flow.Flow, calls []run.PastCall) map[string]Cost {
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

// busy computes the concurrency of the calls.
func (t *Times) busy(calls []run.PastCall) {
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

// addUnit adds a unit. The argument state has the failures of its work.
func (r *Report) addUnit(u *progress.Unit, cost Cost, state run.UnitState) {
	failed := map[string]bool{}
	for _, b := range state.Batches {
		failed[b.ID] = b.Status == flow.Failed
	}
	unit := Unit{Name: u.Name, Status: u.Status(), Failed: state.Status == flow.Failed, Cost: cost, Batches: []Batch{}}
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
		done := Batch{ID: b.ID, Title: b.Title, Status: b.Status, Failed: failed[b.ID], Summary: b.Summary(), Files: []string{}, Fixes: b.Fixes(), Landed: b.Landed, Untested: b.Untested(), AsBefore: b.AsBefore()}
		for state, c := range map[*flow.CheckState]*flow.Checked{&done.Tests: b.Tested, &done.CI: b.CI} {
			if c != nil {
				*state = c.State
			}
		}
		files := b.Files()
		if b.Landed != nil {
			files = b.Landed.Files
			for _, recheck := range b.Landed.Again {
				r.Rechecks = append(r.Rechecks, Recheck{Unit: u.Name, Batch: b.ID, Recheck: recheck})
			}
		}
		for _, f := range files {
			done.Files = append(done.Files, f.Path)
		}
		for _, g := range b.Gaps() {
			r.Gaps = append(r.Gaps, Gap{Unit: u.Name, Batch: b.ID, Gap: g.Gap})
		}
		unit.Batches = append(unit.Batches, done)
	}
	unit.Outcome = outcomeOf(u, &unit)
	r.Units = append(r.Units, unit)
}

// addItems adds failures and waits from the queue. It returns the incomplete items of each unit.
func addItems(ctx context.Context, a *project.Project, r *Report, f flow.Flow, unit func(string) (*progress.Unit, error)) (open map[string][]*lockkeeper.Item, err error) {
	ids := map[string]bool{}
	var first uint64
	err = a.Store.View(ctx, func(read store.Reader) (err error) {
		clear(ids)
		r.Times.Queued = 0
		if open, err = run.OpenItems(read, r.Flow); err != nil {
			return err
		}
		return job.EachItem(read, "", func(it *lockkeeper.Item) bool {
			if run.FlowOf(it) != r.Flow {
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
		return open, err
	}
	failed, err := run.FailuresIn(f, open, unit)
	if err != nil {
		return nil, err
	}
	for _, f := range failed {
		r.Failures = append(r.Failures, Failure{Item: f.Item, Work: f.Name(), Phase: f.Phase, Reason: f.Reason, At: f.At})
	}
	r.Times.Blocked, err = blockedFor(ctx, a, ids, first)
	return open, err
}

const eventPage = 1_000

// blockedFor returns how long items were blocked by locks, as far back as the event log reaches.
// The argument first is the number of the first item.
func blockedFor(ctx context.Context, a *project.Project, items map[string]bool, first uint64) (sum time.Duration, err error) {
	since := map[string]time.Time{}
	for after, page := first, eventPage; page == eventPage; {
		events, err := a.Locks.Events(ctx, store.EventQuery{After: after, Limit: eventPage})
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
