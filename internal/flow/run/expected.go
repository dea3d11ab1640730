package run

import (
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/sched"
)

// estimate sets how long the work runs, and how long the work takes that follows it in its unit. A
// batch runs through all its phases as one item.
func (p *Pipeline) estimate(d *workItem) {
	phases := p.opt.Flow.Phases
	at, _, _ := p.opt.Flow.PhaseQueued(d.phase)
	if d.Kind == string(flow.BatchUnit) {
		d.expected = p.batchTakes(d.Work, at.Name).sum()
		return
	}
	for i := slices.IndexFunc(phases, func(f flow.Phase) bool { return f.Name == at.Name }); i >= 0 && i < len(phases); i++ {
		switch t := p.phaseTakes(phases[i]).sum(); {
		case phases[i].Name == at.Name:
			d.expected = t
		default:
			d.behind += t
		}
	}
}

// phaseTakes returns how long a phase of a unit takes: nothing if people or the program itself carry it out.
func (p *Pipeline) phaseTakes(phase flow.Phase) Took {
	if phase.Executor != flow.Agent && phase.Executor != flow.API {
		return Took{}
	}
	return p.durations.Call(phase)
}

// batchTakes returns how long a batch takes from a phase on. What a plan says counts most.
func (p *Pipeline) batchTakes(w Work, from string) Took {
	if p.opt.Tasks != nil {
		for _, t := range p.opt.Tasks.Tasks {
			if t.Name == w.Part && t.Duration > 0 {
				return Took{Agents: t.Duration}
			}
		}
	}
	t, _ := p.durations.Batch(p.opt.Flow, w.Name(), from)
	return t
}

// behind returns how long the work takes that waits for each batch of a unit, by id: that of the
// batches after it and of those that write its files.
func (p *Pipeline) behind(u *progress.Unit) map[string]time.Duration {
	var plan []sched.Step
	index := map[string]int{}
	for i := range u.Batches {
		b := &u.Batches[i]
		if b.Next == "" {
			continue
		}
		d := workItem{Work: Work{Unit: u.Name, Kind: string(flow.BatchUnit), Part: b.ID}, phase: p.queuedIn(b)}
		p.estimate(&d)
		s := sched.Step{Estimate: d.expected}
		for _, path := range b.WriteTargets {
			s.Locks = append(s.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: path}, Mode: lockkeeper.Write})
		}
		index[b.ID] = len(plan)
		plan = append(plan, s)
	}
	for i := range u.Batches {
		if at, open := index[u.Batches[i].ID]; open {
			for _, id := range u.Batches[i].Blocked {
				if first, open := index[id]; open && first != at {
					plan[at].After = append(plan[at].After, first)
				}
			}
		}
	}
	behind := map[string]time.Duration{}
	chains := sched.Chains(plan)
	for id, at := range index {
		behind[id] = max(0, chains[at]-plan[at].Estimate)
	}
	return behind
}
