package view

import (
	"slices"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// funnel counts the units, screens and batches in each phase of a flow.
func (p *documents) funnel(states []run.UnitState) []FunnelStep {
	f := &funnel{phases: slices.DeleteFunc(slices.Clone(p.flow.Phases), func(ph flow.Phase) bool { return ph.Unit == flow.Whole })}
	batch := string(flow.BatchUnit)
	if p.flow.OneUnit != "" {
		batch = p.flow.Counted
	}
	for _, phase := range f.phases {
		counts := "unit"
		switch phase.Unit {
		case flow.Screen:
			counts = string(flow.Screen)
		case flow.BatchUnit:
			counts = batch
		}
		f.steps = append(f.steps, FunnelStep{Phase: phase.Name, Counts: counts})
	}
	f.steps = append(f.steps, FunnelStep{Phase: progress.LandPhase, Counts: batch})
	for i, u := range p.units {
		f.unit(u, states[i], p.screens[u.name])
	}
	return slices.DeleteFunc(f.steps, func(s FunnelStep) bool { return s.Total() == 0 && s.Counts == "unit" })
}

type funnel struct {
	phases []flow.Phase // without that of the whole codebase
	steps  []FunnelStep // one for each phase, then landing
}

func (f *funnel) unit(u *unit, at run.UnitState, screens []flow.ManifestScreen) {
	here := 0
	if u.Unit != nil {
		here = f.index(u.Phase())
		if u.Excluded != nil {
			here = f.index(u.Left)
		}
		if len(u.Batches) > 0 && !u.AwaitsReview || at.Status == flow.Complete {
			here = len(f.phases) // past all phases of a unit
		}
	}
	for i, phase := range f.phases {
		switch phase.Unit {
		case flow.Controller:
			f.steps[i].count(i, here, at.WorkState, u.Unit != nil && len(u.open) > 0)
		case flow.Screen:
			for _, s := range screens {
				b := slices.IndexFunc(at.Batches, func(b run.BatchState) bool { return b.ID == s.Name })
				if b < 0 {
					f.steps[i].Done++
				} else {
					f.steps[i].count(i, here, at.Batches[b].WorkState, false)
				}
			}
		}
	}
	for i := 0; u.Unit != nil && i < len(u.Batches); i++ {
		b := &u.Batches[i]
		if s := slices.IndexFunc(at.Batches, func(s run.BatchState) bool { return s.ID == b.ID }); s >= 0 {
			f.batch(b, at.Batches[s].WorkState, !u.AwaitsReview)
		}
	}
}

// batch counts a batch. While the plan of its unit waits for a person, all its phases are to come.
func (f *funnel) batch(b *progress.Batch, at run.WorkState, planned bool) {
	here := len(f.steps)
	next := b.Next
	if b.Excluded != nil {
		next = b.Left
	}
	switch next {
	case "":
	case progress.ReviewPhase, progress.LandPhase:
		here = len(f.phases)
	default:
		if here = f.index(next); !planned {
			here = -1
		}
	}
	for i := range f.steps {
		if i == len(f.phases) || f.phases[i].Unit == flow.BatchUnit {
			f.steps[i].count(i, here, at, b.AwaitsReview || !b.Approved)
		}
	}
}

// index returns the position of a phase, or 0 for an unknown one.
func (f *funnel) index(phase string) int {
	return max(0, slices.IndexFunc(f.phases, func(p flow.Phase) bool { return p.Name == phase }))
}

// count adds work that is in the phase number here to the phase number i.
func (s *FunnelStep) count(i, here int, at run.WorkState, people bool) {
	switch {
	case i < here:
		s.Done++
	case at.Status == flow.Excluded:
		if i == here {
			s.Excluded++
		}
	case i > here:
		s.ToCome++
	case at.Status == flow.Failed:
		s.Failed++
	case at.Item != "" && at.Status != flow.Queued:
		s.Active++
	case people:
		s.People++
	default:
		s.Waiting++
	}
}

// landTakes is the weight of landing a batch, in seconds.
const landTakes = 20

// progressOf returns how much of the work is done. The weights are the usual seconds of each phase.
// A unit counts the same whether its plan is known or not, so that a new plan takes nothing back.
func (p *documents) progressOf(states []run.UnitState, weights map[string]float64) (v RunProgress) {
	units := 0
	for i, u := range p.units {
		if states[i].Status == flow.Excluded {
			v.Excluded++
			continue
		}
		done, failed := p.unitShare(u, states[i], weights)
		v.Share, v.Failed, units = v.Share+done, v.Failed+failed, units+1
		if u.Unit == nil {
			continue
		}
		v.Batches += len(u.Batches)
		for _, b := range u.Batches {
			switch {
			case b.Excluded != nil:
				v.Excluded++
			case b.Next == "":
				v.Landed++
			}
		}
	}
	if units > 0 {
		v.Share, v.Failed = rounded(v.Share/float64(units), 1e4), rounded(v.Failed/float64(units), 1e4)
	}
	return v
}

// unitShare returns the share of the work of a unit that is done, and the share that is left behind a
// failure.
func (p *documents) unitShare(u *unit, at run.UnitState, weights map[string]float64) (done, failed float64) {
	if at.Status == flow.Complete {
		return 1, 0
	}
	if u.Unit == nil {
		return 0, 1
	}
	var planning, ended, ofBatch float64
	planned := len(u.Batches) > 0
	due := false
	for _, phase := range p.flow.Phases {
		switch due = due || phase.Name == u.Phase(); {
		case phase.Unit == flow.BatchUnit:
			ofBatch += weights[phase.Name]
		case phase.Unit != flow.Whole:
			planning += weights[phase.Name]
			if !due || planned {
				ended += weights[phase.Name]
			}
		}
	}
	ofBatch += landTakes
	batches := slices.DeleteFunc(slices.Clone(u.Batches), func(b progress.Batch) bool { return b.Excluded != nil })
	for _, b := range batches {
		share := p.batchShare(&b, weights) / ofBatch
		ended += share * ofBatch / float64(len(batches))
		if s := slices.IndexFunc(at.Batches, func(s run.BatchState) bool { return s.ID == b.ID }); s >= 0 && at.Batches[s].Status == flow.Failed {
			failed += (1 - share) * ofBatch / float64(len(batches))
		}
	}
	whole := planning + ofBatch
	if at.Status == flow.Failed && failed == 0 {
		failed = whole - ended
	}
	return ended / whole, failed / whole
}

// batchShare returns the weight of the phases of a batch that are done.
func (p *documents) batchShare(b *progress.Batch, weights map[string]float64) (done float64) {
	for _, phase := range p.flow.BatchPhases() {
		if b.Next == phase.Name {
			return done
		}
		done += weights[phase.Name]
	}
	if b.Next == "" {
		done += landTakes
	}
	return done
}
