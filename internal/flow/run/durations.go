package run

import (
	"slices"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/sched"
)

// A Took is how long a piece of work takes.
type Took struct {
	Agents  time.Duration // in the slot of an agent
	Tests   time.Duration // in a slot for tests
	Outside time.Duration // otherwise: preparation, collecting and landing
}

// Durations has how long the recorded work of a flow took. Runs, the order of the queue and
// simulations predict with it.
type Durations struct {
	Calls  int     // the recorded calls of agents
	Spread float64 // the median deviation of calls from the median of their phase, relative to it

	usual profile            // of a batch without records
	own   map[string]profile // of the batches with records, by name
}

func (t Took) sum() time.Duration { return t.Agents + t.Tests + t.Outside }

// A profile is the time of a piece of work in each phase.
type profile struct {
	phases   map[string]time.Duration // of a call; of the checks and fixes of a batch, all together
	handling map[string]time.Duration // the time outside of slots, by the phase of the first call
}

// A timing is a call of an agent, or a run of a check, in the records.
type timing struct {
	flow, work, phase string
	took, handling    time.Duration
	check             bool
}

// ReadDurations reads what the recorded work of a flow took from a folder of calls, which need not
// exist.
func ReadDurations(dir string, f flow.Flow) (*Durations, error) {
	l := &ledger{dir: dir, ended: newRecords()}
	if _, err := l.all(); err != nil {
		return nil, err
	}
	timings, err := l.timings()
	return durationsOf(f, timings), err
}

// durationsOf returns the medians of calls, and the means of what a batch may need never or often:
// its checks and fixes.
func durationsOf(f flow.Flow, timings []timing) *Durations {
	d := &Durations{own: map[string]profile{}}
	all, handling := map[string][]time.Duration{}, map[string][]time.Duration{}
	own, applied, batches := map[string]profile{}, map[string]int{}, 0
	for _, t := range timings {
		if t.flow != f.Name {
			continue
		}
		if _, known := own[t.work]; !known {
			own[t.work] = newProfile()
		}
		own[t.work].phases[t.phase] += t.took
		own[t.work].handling[t.phase] += t.handling
		if t.phase == f.FirstOfBatch() {
			applied[t.work]++
			batches++
		}
		if t.check {
			continue
		}
		d.Calls++
		all[t.phase] = append(all[t.phase], t.took)
		if t.handling > 0 {
			handling[t.phase] = append(handling[t.phase], t.handling)
		}
	}
	d.usual = newProfile()
	var spread []float64
	for phase, list := range all {
		usual := median(list)
		d.usual.phases[phase] = usual
		for _, took := range list {
			if usual > 0 {
				spread = append(spread, (took-usual).Abs().Seconds()/usual.Seconds())
			}
		}
	}
	if slices.Sort(spread); len(spread) > 0 {
		d.Spread = spread[len(spread)/2]
	}
	for _, check := range f.Checks() {
		var checks, fixes time.Duration
		checked := 0
		for work, times := range own {
			fixes += times.phases[check.Prompt]
			if took, recorded := times.phases[check.Name]; recorded {
				checks, checked = checks+took, checked+max(1, applied[work])
			}
		}
		d.usual.phases[check.Name] = checks / time.Duration(max(1, checked))
		d.usual.phases[check.Prompt] = fixes / time.Duration(max(1, batches))
	}
	for phase, list := range handling {
		d.usual.handling[phase] = median(list)
	}
	for work, n := range applied {
		d.own[work] = own[work].per(n)
	}
	return d
}

func newProfile() profile {
	return profile{phases: map[string]time.Duration{}, handling: map[string]time.Duration{}}
}

func (p profile) per(n int) profile {
	for _, times := range []map[string]time.Duration{p.phases, p.handling} {
		for phase := range times {
			times[phase] /= time.Duration(n)
		}
	}
	return p
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// phase returns the time of a phase without its handling; 0: unknown.
func (p profile) phase(phase flow.Phase) Took {
	if phase.Executor == flow.Command {
		return Took{Agents: p.phases[phase.Prompt], Tests: p.phases[phase.Name]}
	}
	return Took{Agents: p.phases[phase.Name]}
}

// Batch returns how long a batch takes from a phase on, and whether that batch ran before. If
// nothing is known, it takes as long as the queue assumes for an item.
func (d *Durations) Batch(f flow.Flow, work, from string) (t Took, ran bool) {
	times, ran := d.own[work]
	if !ran {
		times = d.usual
	}
	due := false
	for _, phase := range f.Phases {
		if due = due || phase.Name == from; due && phase.Unit == flow.BatchUnit {
			part := times.phase(phase)
			t.Agents += part.Agents
			t.Tests += part.Tests
		}
	}
	t.Outside += times.handling[f.FirstOfBatch()]
	if t.Agents == 0 && (from == f.FirstOfBatch() || t.Tests == 0) {
		t.Agents = sched.DefaultEstimate
	}
	return t, ran
}

// Call returns how long the one call of a phase takes that is not one of a batch.
func (d *Durations) Call(phase flow.Phase) Took {
	t := d.usual.phase(phase)
	t.Outside = d.usual.handling[phase.Name]
	if t.Agents == 0 {
		t.Agents = sched.DefaultEstimate
	}
	return t
}

// checkTakes is the weight of a check phase without records.
const checkTakes = sched.DefaultEstimate / 5

// Weights returns the usual seconds of each phase of a flow, by which progress is measured, and
// whether any of them was recorded. Phases of people and of the program itself have none. Nil
// Durations have no records.
func (d *Durations) Weights(f flow.Flow) (weights map[string]float64, recorded bool) {
	weights = map[string]float64{}
	for _, phase := range f.Phases {
		var took time.Duration
		if d != nil {
			took = d.usual.phase(phase).sum() + d.usual.handling[phase.Name]
		}
		recorded = recorded || took > 0
		switch {
		case took > 0:
		case phase.Executor == flow.Agent || phase.Executor == flow.API:
			took = sched.DefaultEstimate
		case phase.Executor == flow.Command:
			took = checkTakes
		}
		if took > 0 {
			weights[phase.Name] = took.Seconds()
		}
	}
	return weights, recorded
}
