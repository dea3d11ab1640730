package view

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// A Cockpit says what each slot does now, how far the run is, when it probably ends, and why work
// failed. It is a part of Now.
type Cockpit struct {
	Lanes    []SlotLane      `json:"lanes"` // one for each slot: agents first, then tests
	Aside    []LaneWork      `json:"aside"` // work that holds locks and no slot: it gets ready, waits for a slot, or stores what it made
	Waiting  QueueWaits      `json:"waiting"`
	Funnel   []FunnelStep    `json:"funnel"` // the phases in order, then landing
	Progress RunProgress     `json:"progress"`
	Forecast *Forecast       `json:"forecast,omitempty"` // nil: no process conducts the run, or nothing is known
	Excluded []ExcludedWork  `json:"excluded"`           // what people excluded from runs
	Causes   []conduct.Cause `json:"causes"`             // the causes of failures, the most frequent first
}

// A SlotLane is one slot for an agent or a test. It has either Work or Free. A Lane of the timeline is
// one piece of work instead.
type SlotLane struct {
	ID      string    `json:"id"`                // stable during the run, such as agent-1
	Pool    string    `json:"pool"`              // the pool of the slot, as in Slots
	Machine string    `json:"machine,omitempty"` // the machine that has the slot; empty: only one works
	Work    *LaneWork `json:"work,omitempty"`
	Free    *FreeSlot `json:"free,omitempty"`
}

// LaneWork is a piece of work that runs now.
type LaneWork struct {
	Item   string    `json:"item"`
	Name   string    `json:"name"`
	Unit   string    `json:"unit,omitempty"` // empty: the item belongs to no flow
	Part   string    `json:"part,omitempty"` // the batch, screen or topic
	Phase  string    `json:"phase"`
	State  string    `json:"state"`          // as of an item, or "waiting for a slot"
	Since  time.Time `json:"since"`          // when the call or check began, or else the item
	Line   string    `json:"line,omitempty"` // the last line of output; empty: there is none, or another machine has it
	Said   time.Time `json:"said,omitzero"`  // the time of the last output
	Silent bool      `json:"silent,omitempty"`
	Calls  int       `json:"calls"` // calls of agents that ended
	USD    float64   `json:"usd"`   // what they cost
}

// Title returns the name that people use: of a task, without the unit that all tasks are in.
func (w LaneWork) Title() string {
	if w.Unit == flow.Tasks().OneUnit {
		return w.Part
	}
	return w.Name
}

// A FreeSlot says why nothing uses a slot.
type FreeSlot struct {
	Reason FreeReason `json:"reason"`
	Text   string     `json:"text"`
	Until  time.Time  `json:"until,omitzero"` // for a rate limit
}

// FreeReason is why a slot is free.
type FreeReason string

// Reasons why a slot is free.
const (
	FreeStarting FreeReason = "starting"   // work is ready and starts next
	FreeNothing  FreeReason = "nothing"    // no work is ready
	FreeLocks    FreeReason = "locks"      // all queued work is blocked by locks
	FreeAfter    FreeReason = "after"      // queued work waits for other work
	FreePeople   FreeReason = "people"     // the next steps need a decision
	FreeLimited  FreeReason = "rate_limit" // nothing starts before the end of a rate limit
	FreeBudget   FreeReason = "budget"     // the budget is used up
	FreeStopping FreeReason = "stopping"   // the run or the machine starts nothing new
)

// QueueWaits counts queued work by what it waits for.
type QueueWaits struct {
	Slot  int `json:"slot"`  // ready, or waiting for a free slot
	Locks int `json:"locks"` // blocked by locks
	After int `json:"after"` // waiting for other work
	Other int `json:"other"` // waiting for a machine with a current copy
}

// Total returns the number of queued items.
func (w QueueWaits) Total() int { return w.Slot + w.Locks + w.After + w.Other }

// A FunnelStep counts the units or batches in one phase. Each unit or batch is in one of the counts
// of each phase that it needs.
type FunnelStep struct {
	Phase    string `json:"phase"`
	Counts   string `json:"counts"`   // unit, screen, batch or task
	ToCome   int    `json:"to_come"`  // earlier phases are left
	Waiting  int    `json:"waiting"`  // in the phase, and queued or about to be
	Active   int    `json:"active"`   // in the phase, and at work
	People   int    `json:"people"`   // in the phase, and a person must decide
	Failed   int    `json:"failed"`   // failed in the phase
	Excluded int    `json:"excluded"` // excluded from the run in the phase
	Done     int    `json:"done"`
}

// Total returns how many units or batches the phase has.
func (s FunnelStep) Total() int {
	return s.ToCome + s.Waiting + s.Active + s.People + s.Failed + s.Excluded + s.Done
}

// RunProgress is how much of the known work is done. It grows with each phase that ends.
type RunProgress struct {
	Share    float64 `json:"share"`    // 0 to 1: each unit counts the same, and its phases by their usual durations
	Failed   float64 `json:"failed"`   // the share of the work that is left behind failures
	Assumed  bool    `json:"assumed"`  // no durations were recorded when the run began, so all phases of agents count the same
	Batches  int     `json:"batches"`  // batches that are planned
	Landed   int     `json:"landed"`   // batches that landed, or changed nothing
	Excluded int     `json:"excluded"` // units and batches that people excluded
}

// A Forecast predicts when the run has done what it can do without people.
type Forecast struct {
	Made    time.Time `json:"made"`
	Finish  time.Time `json:"finish"`
	Left    Seconds   `json:"left_seconds"`
	Error   float64   `json:"error"`                  // relative error of the time that is left; 0: unknown
	From    string    `json:"error_from"`             // past_runs, durations, or assumed: what the error comes from
	Runs    int       `json:"past_runs,omitempty"`    // how many past predictions were compared
	Calls   int       `json:"recorded_calls"`         // the calls from which the durations come
	Later   int       `json:"unknown_work,omitempty"` // units with later work that is not known
	Overdue bool      `json:"overdue,omitempty"`
}

// Spread says how wrong the prediction probably is.
func (f *Forecast) Spread() string {
	switch {
	case f.Error > 0 && f.From == ErrorOfRuns:
		return fmt.Sprintf("± %.0f %%, as in %s", f.Error*100, counted(f.Runs, "earlier run"))
	case f.Error > 0:
		return fmt.Sprintf("± %.0f %%, from the spread of %s", f.Error*100, counted(f.Calls, "call"))
	}
	if f.Calls == 0 {
		return "rough: 5 minutes assumed for each call"
	}
	return "rough: " + counted(f.Calls, "call") + " recorded"
}

// What the error of a forecast comes from.
const (
	ErrorOfRuns  = "past_runs" // predictions of earlier runs
	ErrorOfCalls = "durations" // the spread of recorded durations
	ErrorUnknown = "assumed"   // nothing was recorded
)

// Earliest returns when the run ends if the prediction is too long by its error.
func (f *Forecast) Earliest() time.Time { return f.shifted(-f.Error) }

// Latest returns when the run ends if the prediction is too short by its error.
func (f *Forecast) Latest() time.Time { return f.shifted(f.Error) }

func (f *Forecast) shifted(by float64) time.Time {
	return f.Finish.Add(time.Duration(by * float64(f.Left.Duration())))
}

// ExcludedWork is a unit or a batch that a person excluded from runs.
type ExcludedWork struct {
	run.Work
	progress.Exclusion
}

// excluded lists the excluded units, and the excluded batches of others.
func (p *documents) excluded() (list []ExcludedWork) {
	list = []ExcludedWork{}
	for _, u := range p.units {
		switch {
		case u.Unit == nil:
		case u.Excluded != nil:
			list = append(list, ExcludedWork{run.Work{Unit: u.name, Kind: string(flow.Controller)}, *u.Excluded})
		default:
			for _, b := range u.Batches {
				if b.Excluded != nil && !b.Excluded.Follows {
					list = append(list, ExcludedWork{run.Work{Unit: u.name, Kind: string(flow.BatchUnit), Part: b.ID}, *b.Excluded})
				}
			}
		}
	}
	return list
}

// cockpit returns what the slots do and how far the run is. With an error, it is incomplete.
func (rd *Reader) cockpit(s *snapshot, p *documents, states []run.UnitState, machines []fleet.Machine, entries []run.CallRecord, waits QueueWaits, people int, failed []run.Failure) (c Cockpit, err error) {
	records := recordsOf(entries)
	lanes, unread := rd.lanes(s, machines, records, s.freeSlots(waits, people, s.pause()))
	aside, err := rd.aside(s, records)
	weights, recorded := (*run.Durations)(nil).Weights(p.flow)
	if s.isThisRun() && s.run.Weights != nil {
		weights, recorded = s.run.Weights, s.run.Recorded
	}
	c = Cockpit{Excluded: p.excluded(), Lanes: lanes, Aside: aside, Waiting: waits, Funnel: p.funnel(states), Progress: p.progressOf(states, weights)}
	c.Progress.Assumed = !recorded
	forecast, unpredicted := rd.forecast(s)
	c.Forecast = forecast
	causes, unknown := rd.causes.Causes(failed)
	c.Causes = causes
	return c, errors.Join(unread, err, unpredicted, unknown)
}

// pause returns why the run starts nothing, or an empty reason.
func (s *snapshot) pause() FreeSlot {
	if !s.isThisRun() || s.conductor == nil || s.run.Pause == nil {
		return FreeSlot{}
	}
	switch pause := s.run.Pause; {
	case pause.Budget != "":
		return FreeSlot{Reason: FreeBudget, Text: "the budget is used up"}
	case pause.Until.After(s.At):
		return FreeSlot{Reason: FreeLimited, Text: "nothing starts before the end of a rate limit", Until: pause.Until}
	}
	return FreeSlot{}
}

// spreadCalls is how many calls must be recorded before their spread counts.
const spreadCalls = 5

// forecast returns the newest prediction of the run, with the usual error of earlier ones.
func (rd *Reader) forecast(s *snapshot) (*Forecast, error) {
	if s.conductor == nil || !s.isThisRun() || !s.run.Ended.IsZero() {
		return nil, nil
	}
	said := cmp.Or(s.run.Newest, s.run.Prediction)
	if said == nil {
		return nil, nil
	}
	f := &Forecast{Made: said.At, Finish: said.At.Add(Seconds(said.Seconds).Duration()), From: ErrorUnknown, Calls: said.Calls, Later: said.Later}
	f.Left = seconds(max(0, f.Finish.Sub(s.At)))
	f.Overdue = !f.Finish.After(s.At)
	past, err := conduct.Predictions(rd.project)
	var errs []float64
	for _, p := range past {
		if p.Flow == s.flow && p.Seconds > 0 && p.Calls > 0 {
			errs = append(errs, math.Abs(p.Took-p.Seconds)/p.Seconds)
		}
	}
	slices.Sort(errs)
	switch {
	case len(errs) > 0:
		f.Error, f.From, f.Runs = rounded(errs[len(errs)/2], 1e3), ErrorOfRuns, len(errs)
	case said.Calls >= spreadCalls && said.Spread > 0:
		f.Error, f.From = rounded(said.Spread, 1e3), ErrorOfCalls
	}
	return f, err
}
