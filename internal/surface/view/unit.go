package view

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/surface/acts"
)

// Unit is everything known about one unit of a flow: what was found, decided, planned, called, tested
// and landed, what it costs and what it waits for.
type Unit struct {
	Moment
	Flow string `json:"flow"`
	BoardUnit
	Phases  []BoardPhase `json:"phases"` // the columns of Cells
	Batches []UnitBatch  `json:"batches"`

	Analysis  *flow.Analysis         `json:"analysis,omitempty"`
	Topics    []progress.Topic       `json:"topics"`
	Items     []progress.Item        `json:"items"` // improvements, with their decisions
	Gone      []progress.DroppedItem `json:"gone"`  // improvements that the audit dropped
	Approved  *flow.Approval         `json:"approved,omitempty"`
	Warnings  []string               `json:"warnings"` // about the plan
	Questions []progress.Question    `json:"questions"`
	Decisions []OpenDecision         `json:"open"` // open decisions, the most useful first

	Work     []UnitWork  `json:"work"`     // items of the queue, the newest first
	Calls    []UnitCall  `json:"calls"`    // calls of agents, the newest first
	More     int         `json:"more"`     // how many earlier calls are not listed
	Landings []Landing   `json:"landings"` // the newest first
	Cost     Cost        `json:"cost"`     // of all calls for the unit
	Spent    []PhaseCost `json:"spent"`    // the cost by phase, in the order of the flow
	Problems []string    `json:"problems"` // what could not be read
}

// UnitBatch is a batch of a unit, or one of its screens before there is a plan.
type UnitBatch struct {
	BoardBatch
	Detail *BatchDetail `json:"detail,omitempty"` // without its diff; nil for a screen
}

// UnitWork is an item of the queue for a unit.
type UnitWork struct {
	ListedItem
	Waits  []Wait  // what it waits for; empty: it runs or has ended
	Waited Seconds // until it started, or until now
	Took   Seconds // from its start to its end, or until now
}

// MarshalJSON implements json.Marshaler, because that of the item would hide the other fields.
func (w UnitWork) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ShownListedItem
		Waits  []Wait  `json:"waits"`
		Waited Seconds `json:"waited_seconds"`
		Took   Seconds `json:"took_seconds"`
	}{w.Shown(), acts.OrEmpty(w.Waits), w.Waited, w.Took})
}

// UnitCall is a call of an agent for an item of a unit.
type UnitCall struct {
	Call
	Item string `json:"item"` // empty: the item is unknown
	Name string `json:"name"` // name of the work
}

// PhaseCost is the cost of the calls of a phase.
type PhaseCost struct {
	Phase string  `json:"phase"`
	USD   float64 `json:"usd"`
	Calls int     `json:"calls"`
	Took  Seconds `json:"took_seconds"`
}

// These constants limit the lists of a Unit.
const (
	unitWorkShown  = 100
	unitCallsShown = 100
	unitWaits      = 20 // items whose waits are explained, because each costs a query
)

// Unit returns what is known about a unit of a flow; "": the current or last flow.
func (rd *Reader) Unit(ctx context.Context, flowName, name string) (*Unit, error) {
	s, p, err := rd.flowState(ctx, flowName, nil)
	if err != nil {
		return nil, err
	}
	u, known := p.find(name)
	if !known {
		return nil, &lockkeeper.InputError{Field: "unit", Value: name, Reason: "the flow " + s.flow + " has no such unit", Next: "lockkeeper status"}
	}
	b := &Board{Phases: boardPhases(p.flow)}
	v := &Unit{Moment: s.Moment, Flow: s.flow, BoardUnit: b.row(p.flow, u, p.state(u, s.items[name])), Phases: b.Phases, Batches: []UnitBatch{}, Problems: problems(p.problem)}
	if u.Unit != nil {
		v.addDocuments(u.Unit)
	}
	w, err := rd.weigher(ctx, p)
	v.Problems = append(v.Problems, problems(problemOf(err))...)
	v.Decisions = []OpenDecision{}
	for _, g := range progress.SortDecisions(slices.Clone(u.open)) {
		v.Decisions = append(v.Decisions, w.weigh(g))
	}
	items, err := rd.addWork(ctx, v)
	if err != nil {
		return nil, err
	}
	rd.addCalls(v, p.flow, items)
	return v, rd.addLandings(ctx, v)
}

func (v *Unit) addDocuments(u *progress.Unit) {
	v.Analysis, v.Topics, v.Items, v.Gone = u.Analysis, acts.OrEmpty(u.Topics), acts.OrEmpty(u.Items), acts.OrEmpty(u.DroppedItems())
	v.Warnings, v.Questions = acts.OrEmpty(u.Warnings), acts.OrEmpty(u.Questions())
	if u.Plan != nil {
		v.Approved = u.Plan.Approved
	}
	for _, at := range v.BoardUnit.Batches {
		of := UnitBatch{BoardBatch: at}
		if b, ok := u.Batch(at.ID); ok {
			detail := batchDetail(u, b, at.WorkState)
			of.Detail = &detail
		}
		v.Batches = append(v.Batches, of)
	}
}

// addWork adds the items of the unit and returns all of them, the oldest first.
func (rd *Reader) addWork(ctx context.Context, v *Unit) ([]*lockkeeper.Item, error) {
	v.Work = []UnitWork{}
	if err := rd.ReadItemNames(ctx); err != nil {
		return nil, err
	}
	q, err := job.Open(rd.project)
	if err != nil {
		return nil, err
	}
	items, err := q.Items(ctx, rd.items.of(v.Flow, v.Name))
	if err != nil {
		return nil, err
	}
	explained := 0
	for _, it := range slices.Backward(items) {
		if len(v.Work) == unitWorkShown {
			break
		}
		w := UnitWork{ListedItem: ListedItem{Item: it, State: ItemState(it), Name: ItemName(it)}, Waits: []Wait{}}
		w.Waited, w.Took = took(it, v.At)
		if isWaiting(it) && explained < unitWaits {
			explained++
			why, err := q.Why(ctx, it.ID)
			if err != nil {
				return nil, err
			}
			w.Waits = waitsOf(why)
		}
		v.Work = append(v.Work, w)
	}
	return items, nil
}

// isWaiting reports whether an item waits to start or to continue.
func isWaiting(it *lockkeeper.Item) bool {
	return it.Status == lockkeeper.ItemQueued || it.Status == lockkeeper.ItemDispatched && it.Stage != lockkeeper.StageRunning
}

// took returns how long an item waited to start, and how long its last attempt has taken.
func took(it *lockkeeper.Item, now time.Time) (waited, ran Seconds) {
	end := now
	if !it.CompletedAt.IsZero() {
		end = it.CompletedAt
	}
	if it.DispatchedAt.IsZero() || it.Status == lockkeeper.ItemQueued {
		return seconds(max(0, end.Sub(it.QueuedAt))), 0
	}
	return seconds(max(0, it.DispatchedAt.Sub(it.QueuedAt))), seconds(max(0, end.Sub(it.DispatchedAt)))
}

// addCalls adds the calls of agents for the unit, with their cost.
func (rd *Reader) addCalls(v *Unit, f flow.Flow, items []*lockkeeper.Item) {
	entries, err := rd.journal.All(f.Name)
	if err != nil {
		v.Problems = append(v.Problems, "calls of agents: "+err.Error())
	}
	own := slices.DeleteFunc(entries, func(e run.CallRecord) bool {
		return e.IsCheck() || e.Work != v.Name && !strings.HasPrefix(e.Work, v.Name+"/")
	})
	v.Calls = []UnitCall{}
	cost := map[string]*PhaseCost{}
	for _, it := range items {
		for i, e := range run.CallsOf(own, it) {
			call := UnitCall{Call: callOf(f.Name, i+1, e), Item: it.ID, Name: ItemName(it)}
			call.Running = call.Open && it.IsHolding()
			v.Calls = append(v.Calls, call)
			if e.Call == nil {
				continue
			}
			v.Cost.add(e.Call.Call)
			at := cost[e.Call.Phase]
			if at == nil {
				at = &PhaseCost{Phase: e.Call.Phase}
				cost[at.Phase] = at
			}
			at.USD, at.Calls, at.Took = rounded(at.USD+e.Call.USD, 1e6), at.Calls+1, at.Took+seconds(e.Call.Took)
		}
	}
	v.Cost.TotalUSD, v.Spent = v.Cost.USD, []PhaseCost{}
	for _, c := range cost {
		v.Spent = append(v.Spent, *c)
	}
	order := func(phase string) int {
		return slices.IndexFunc(f.Phases, func(p flow.Phase) bool { return p.Name == phase || p.Prompt == phase })
	}
	slices.SortFunc(v.Spent, func(a, b PhaseCost) int {
		return cmp.Or(cmp.Compare(order(a.Phase), order(b.Phase)), strings.Compare(a.Phase, b.Phase))
	})
	slices.SortStableFunc(v.Calls, func(a, b UnitCall) int { return b.Began.Compare(a.Began) })
	if v.More = max(0, len(v.Calls)-unitCallsShown); v.More > 0 {
		v.Calls = v.Calls[:unitCallsShown]
	}
}

// addLandings adds the landings of the unit's batches.
func (rd *Reader) addLandings(ctx context.Context, v *Unit) (err error) {
	var seqs []uint64
	for _, b := range v.Batches {
		if b.Detail != nil && b.Detail.Landed != nil {
			seqs = append(seqs, b.Detail.Landed.Landings...)
		}
	}
	slices.Sort(seqs)
	slices.Reverse(seqs)
	v.Landings = []Landing{}
	if len(seqs) > 0 {
		v.Landings, err = rd.landingsOf(ctx, seqs)
	}
	return err
}
