package run

import (
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/sched"
)

// medians returns the median time of the recorded calls of each phase.
func medians(calls []*record) map[string]time.Duration {
	times := map[string][]time.Duration{}
	for _, c := range calls {
		if c.Error == "" {
			times[c.Phase] = append(times[c.Phase], c.Took)
		}
	}
	usual := map[string]time.Duration{}
	for phase, list := range times {
		slices.Sort(list)
		usual[phase] = list[len(list)/2]
	}
	return usual
}

// expected returns how long a phase takes: the median of its recorded calls, else the default of the
// queue for the phase of an agent, and nothing for one that people or the program itself carry out.
func (p *Pipeline) expected(phase flow.Phase) time.Duration {
	if usual := p.ledger.usual[phase.Name]; usual > 0 {
		return usual
	}
	if phase.Executor == flow.Agent || phase.Executor == flow.API {
		return sched.DefaultEstimate
	}
	return 0
}

// estimate sets how long the work runs, and how long the work takes that follows it in its unit. A
// batch runs through all its phases as one item.
func (p *Pipeline) estimate(d *workItem) {
	phases := p.opt.Flow.Phases
	at, _, _ := p.opt.Flow.PhaseQueued(d.phase)
	for i := slices.IndexFunc(phases, func(f flow.Phase) bool { return f.Name == at.Name }); i >= 0 && i < len(phases); i++ {
		if phases[i].Name == at.Name || d.Kind == string(flow.BatchUnit) {
			d.expected += p.expected(phases[i])
		} else {
			d.behind += p.expected(phases[i])
		}
	}
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
		d := workItem{Work: Work{Kind: string(flow.BatchUnit)}, phase: p.queuedIn(b)}
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
