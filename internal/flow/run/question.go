package run

import (
	"context"
	"fmt"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/sched"
)

// questionUnit is the kind of work that answers a question of a person.
const questionUnit = "question"

// queueQuestions queues the open questions about a unit. They hold up no phase.
func (p *Pipeline) queueQuestions(ctx context.Context, u *progress.Unit) error {
	for _, q := range u.Questions() {
		if q.Answer != "" {
			continue
		}
		err := p.enqueue(ctx, workItem{Work: Work{Unit: u.Name, Kind: questionUnit, Part: q.ID}, phase: flow.QuestionPhase, pools: []string{sched.PoolAgent}})
		if err != nil {
			return err
		}
	}
	return nil
}

// answerQuestion asks an agent that only reads, and stores its answer.
func (p *Pipeline) answerQuestion(ctx context.Context, t *timed, d workItem) error {
	u, err := p.opt.Progress.Unit(ctx, d.Unit)
	if err != nil {
		return err
	}
	asked, open := u.OpenQuestion(d.Part)
	if !open {
		return nil // an earlier run crashed before it completed the item
	}
	ask := flow.Ask{Files: p.filesOf(d.Unit), Question: asked.Text}
	if u.Analysis != nil {
		ask.Analysis = text(u.Analysis)
	}
	if it, ok := u.Item(asked.Item); ok {
		ask.Items = []flow.Decided{{Ready: it.Ready, Decision: it.Decision, By: it.By, At: it.At, Notes: it.Notes, Added: it.Added}}
	}
	for _, n := range u.NotesOn(asked.ID) {
		ask.Notes = append(ask.Notes, n.Text)
	}
	q := question{unit: d.Unit, batch: d.Part, phase: d.phase, form: flow.QuestionAnswer, purpose: p.opt.Flow.Name + "/" + d.Unit + "/" + questionUnit + "/" + d.Part}
	return askReader(ctx, p, t, q, flow.Question, ask, func(a flow.Explanation, calls []flow.Call) error {
		if a.Answer == "" {
			return fmt.Errorf("the agent's answer to %s is empty", d.Name())
		}
		return p.opt.Progress.AnswerQuestion(ctx, d.Unit, d.Part, a.Answer, calls)
	})
}
