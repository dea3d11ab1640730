package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/sched"
)

const topicUnit = "topic"

func (p *Pipeline) work(ctx context.Context, job *sched.Job) error {
	d, err := workOf(&job.Item)
	if err != nil {
		return err
	}
	u, err := p.unitOf(ctx, d)
	if err != nil {
		return err
	}
	if !p.wants(d.Work) || !isCurrent(u, &job.Item, d) {
		return nil // an earlier run queued the work, the plan changed, or the work is done; advance queues the due phase
	}
	err = p.do(ctx, queuedWork{job}, d)
	if paused, ok := errors.AsType[*pausedError](err); ok {
		return &sched.LaterError{Reason: paused.Error()}
	}
	return err
}

// unitOf reads the unit of a work item. For a batch it reads only that batch.
func (p *Pipeline) unitOf(ctx context.Context, d workItem) (*progress.Unit, error) {
	if d.Kind != string(flow.BatchUnit) {
		return p.opt.Progress.Unit(ctx, d.Unit)
	}
	u, _, err := p.opt.Progress.BatchOf(ctx, d.Unit, d.Part)
	return u, err
}

// ended reports a failed item. It marks the unit of any ended item, because the next phase may be
// due.
func (p *Pipeline) ended(it lockkeeper.Item) {
	d, err := workOf(&it)
	if err != nil {
		p.tell(News{Kind: NewsWarning, Item: it.ID, Text: err.Error()})
		return
	}
	if it.Status == lockkeeper.ItemError && it.Failure != nil {
		p.tell(News{Kind: NewsFailed, Unit: d.Unit, Batch: d.Part, Phase: it.Failure.Phase, Item: it.ID, Text: it.Failure.Reason})
	}
	p.mark(d.Unit)
}

// askAboutUnit asks an agent that only reads, and stores its answer.
func (p *Pipeline) askAboutUnit(ctx context.Context, t *timed, d workItem, phase flow.Phase) error {
	u, err := p.opt.Progress.Unit(ctx, d.Unit)
	if err != nil {
		return err
	}
	if u.Phase() != d.phase {
		return nil // the document exists: an earlier run crashed before it completed the item
	}
	ask := flow.Ask{Files: p.filesOf(d.Unit), Outputs: map[string]string{}}
	for _, n := range u.Notes("", phase) {
		ask.Notes = append(ask.Notes, n.Text)
	}
	if u.Analysis != nil {
		ask.Analysis = text(u.Analysis)
	}
	for _, topic := range u.Topics {
		ask.Research = append(ask.Research, flow.ResearchText{Prompt: topic.Prompt, Text: topic.Text})
	}
	if u.Extract != nil {
		ask.Possible = text(u.Extract)
	}
	for file, doc := range u.Outputs {
		ask.Outputs[file] = text(doc)
	}
	if u.Decisions != nil {
		todo := []flow.Decided{}
		for _, item := range u.Decisions.Items {
			if item.Decision == flow.Todo {
				todo = append(todo, item)
			}
		}
		ask.Items, ask.Todo = todo, text(todo)
	}
	q := question{unit: d.Unit, phase: d.phase, form: phase.Answer, purpose: p.opt.Flow.Name + "/" + d.Unit + "/" + d.phase}
	return askReader(ctx, p, t, q, phase.Prompt, ask, func(doc json.RawMessage, calls []flow.Call) error {
		if err := p.checkAnswer(phase, doc); err != nil {
			return err
		}
		return p.opt.Progress.PutAnswer(ctx, d.Unit, phase, doc, calls)
	})
}

// askReader calls an agent that only reads, and stores its answer with the function put. Changes in
// its workspace are recorded as gaps and do not land.
func askReader[T any](ctx context.Context, p *Pipeline, t *timed, q question, prompt string, ask flow.Ask, put func(T, []flow.Call) error) (err error) {
	a, w, err := p.takeOver(ctx, q)
	if err != nil {
		return err
	}
	if a == nil {
		ask.Phase, ask.Name = prompt, q.unit
		if q.batch != "" {
			ask.Name += "/" + q.batch
		}
		if q.prompt, err = p.opt.Prompts.Render(prompt, ask); err != nil {
			return err
		}
		if w, err = p.makeWorkspace(ctx, lockedPaths(t.Grant())); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx), false)) }()
		if a, err = p.call(ctx, t, q, w, ""); err != nil {
			return err
		}
	} else if w != nil {
		defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx), false)) }()
	}
	if w != nil {
		if _, err := p.removeUncovered(ctx, t, q, w, true); err != nil {
			p.news(NewsWarning, q, "cannot read what the agent changed: "+err.Error())
		}
	}
	doc, err := answer[T](a.Result)
	if err == nil {
		err = put(doc, []flow.Call{a.call})
	}
	if err = errors.Join(err, p.used(a)); err != nil {
		return err
	}
	p.news(NewsDone, q, "")
	return nil
}

// checkAnswer refuses a plan with targets that could never land.
func (p *Pipeline) checkAnswer(phase flow.Phase, answer json.RawMessage) error {
	if phase.Output != flow.BatchesFile {
		return nil
	}
	var plan flow.Plan
	if err := json.Unmarshal(answer, &plan); err != nil {
		return fmt.Errorf("the agent's answer: %w", err)
	}
	return p.checkTargets(plan.Batches)
}

// checkTargets refuses write targets that the gate does not permit.
func (p *Pipeline) checkTargets(batches []flow.Batch) error {
	var all []error
	for _, b := range batches {
		for _, target := range b.WriteTargets {
			if err := p.opt.Permits(target); err != nil {
				all = append(all, fmt.Errorf("%s: write target %s: %w", cmp.Or(b.Title, b.ID), target, err))
			}
		}
	}
	return errors.Join(all...)
}

// audit compares the ready items with earlier decisions.
func (p *Pipeline) audit(ctx context.Context, _ *timed, d workItem, phase flow.Phase) error {
	u, err := p.opt.Progress.Unit(ctx, d.Unit)
	if err != nil || u.Phase() != phase.Name {
		return err
	}
	if err := p.opt.Progress.Audit(ctx, d.Unit); err != nil {
		return err
	}
	p.news(NewsDone, question{unit: d.Unit, phase: phase.Name}, "")
	return nil
}

func (p *Pipeline) researchTopic(ctx context.Context, t *timed, d workItem, phase flow.Phase) error {
	u, err := p.opt.Progress.Unit(ctx, d.Unit)
	if err != nil {
		return err
	}
	for _, topic := range u.Topics {
		if topic.Slug != d.Part || topic.State != progress.Pending {
			continue
		}
		q := question{unit: d.Unit, batch: d.Part, phase: phase.Name}
		if err := p.begin(q, ""); err != nil {
			return err
		}
		text, err := p.askAPI(ctx, t, q, topic.Prompt)
		if err != nil {
			return p.orPause(err)
		}
		if err := p.opt.Progress.Answer(ctx, d.Unit, topic.Slug, documents.MethodAPI, text, "api"); err != nil {
			return err
		}
		p.news(NewsDone, q, "")
	}
	return nil
}

// queueTopics queues the topics that the API should answer. The others wait for people.
func (p *Pipeline) queueTopics(ctx context.Context, u *progress.Unit, phase flow.Phase) error {
	if p.opt.Research == nil {
		return nil
	}
	chosen, err := p.opt.Progress.ByAPI(ctx, u)
	if err != nil {
		return err
	}
	for _, topic := range u.Topics {
		if topic.State != progress.Pending || !p.opt.API && !slices.Contains(chosen, topic.Slug) {
			continue
		}
		err := p.enqueue(ctx, workItem{Work: Work{Unit: u.Name, Kind: topicUnit, Part: topic.Slug}, phase: phase.Name, pools: []string{sched.PoolAPI}})
		if err != nil {
			return err
		}
	}
	return nil
}

// askAPI asks the Messages API and counts the cost.
func (p *Pipeline) askAPI(ctx context.Context, t execution, q question, prompt string) (string, error) {
	q.purpose = "research/" + q.unit + "/" + q.batch
	var said string
	_, err := agent.Retry(ctx, p.opt.Agents.Retry, func(ctx context.Context, _ int) (agent.Result, error) {
		if err := p.ledger.start(); err != nil {
			return agent.Result{}, err
		}
		tr, err := p.ledger.begin(q.purpose, "", t.ID(), time.Time{})
		if err == nil {
			err = tr.keep(tr.files().Prompt(), prompt)
		}
		if err != nil {
			return agent.Result{}, err
		}
		began := time.Now().UTC()
		res, failure := p.opt.Research.Ask(ctx, prompt)
		said = res.Text
		cost, warning := p.ledger.count(res, failure)
		if warning != "" {
			p.news(NewsWarning, q, warning)
		}
		call := flow.Call{Agent: "api", Phase: q.phase, Model: res.Model, USD: float64(cost.MicroUSD) / 1e6, Tokens: cost.Tokens, Began: began, Took: time.Since(began)}
		if failure != nil {
			call.Error = failure.Error()
		}
		if err := tr.keep(tr.files().Output, res.Text); err != nil {
			return res, err
		}
		if err := tr.write(&record{Call: call, Unit: q.unit, Run: p.ledger.run, Cost: cost, Used: true}); err != nil {
			return res, err
		}
		return res, failure
	})
	return said, err
}
