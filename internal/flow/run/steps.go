package run

import (
	"context"
	"fmt"
	"slices"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/sched"
)

// A unitStep carries out a phase of a unit. The function queue queues its work: one item, or one
// for each screen or topic. The function do carries out one item. A step without functions is
// carried out by people.
type unitStep struct {
	queue func(context.Context, *progress.Unit, flow.Phase) error
	do    func(context.Context, *timed, workItem, flow.Phase) error
}

type batchStep func(*batchRun, context.Context, flow.Phase) error

func (p *Pipeline) unitSteps() map[flow.Step]unitStep {
	return map[flow.Step]unitStep{
		flow.Asking:        {p.queueUnit, p.askAboutUnit},
		flow.AskingScreens: {p.queueScreens, p.askAboutScreen},
		flow.Researching:   {p.queueTopics, p.researchTopic},
		flow.Auditing:      {p.queueUnit, p.audit},
		flow.Deciding:      {},
	}
}

func batchSteps() map[flow.Step]batchStep {
	return map[flow.Step]batchStep{
		flow.Applying:  (*batchRun).apply,
		flow.Checking:  (*batchRun).check,
		flow.Verifying: (*batchRun).verify,
	}
}

// queueUnit queues a phase of a unit as one item.
func (p *Pipeline) queueUnit(ctx context.Context, u *progress.Unit, phase flow.Phase) error {
	return p.enqueue(ctx, workItem{Work: Work{Unit: u.Name, Kind: string(phase.Unit)}, phase: phase.Name, pools: poolsOf(phase)})
}

func poolsOf(p flow.Phase) []string {
	if p.Executor == flow.Agent {
		return []string{sched.PoolAgent}
	}
	return nil
}

// do carries out one work item and records how long that took.
func (p *Pipeline) do(ctx context.Context, t execution, d workItem) error {
	if d.Kind == string(flow.BatchUnit) {
		if err := p.awaitBaseline(ctx); err != nil {
			return err
		}
	}
	timed := startTiming(t)
	if err := p.carryOut(ctx, timed, d); err != nil {
		return err
	}
	return timed.record()
}

// carryOut stores a document or returns an error.
func (p *Pipeline) carryOut(ctx context.Context, t *timed, d workItem) error {
	switch d.Kind {
	case string(flow.BatchUnit):
		return p.runBatch(ctx, t, d.Unit, d.Part)
	case questionUnit:
		return p.answerQuestion(ctx, t, d)
	}
	if early, err := p.isEarly(ctx, d); early || err != nil {
		return err // it is queued again when it is due
	}
	phase, _ := p.opt.Flow.Phase(d.phase)
	step := p.unitSteps()[phase.Step]
	if step.do == nil {
		return fmt.Errorf("the flow %s has no work in a phase %q", p.opt.Flow.Name, d.phase)
	}
	return step.do(ctx, t, d, phase)
}

// isEarly reports whether an earlier phase of the unit is due. A conductor that disappeared can have queued work
// by documents that were newer than those that this machine got.
func (p *Pipeline) isEarly(ctx context.Context, d workItem) (bool, error) {
	u, err := p.opt.Progress.Unit(ctx, d.Unit)
	if err != nil {
		return false, err
	}
	at := func(name string) int {
		return slices.IndexFunc(p.opt.Flow.Phases, func(f flow.Phase) bool { return f.Name == name })
	}
	due := at(u.Phase())
	return due >= 0 && due < at(d.phase), nil
}
