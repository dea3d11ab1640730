package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"lockkeeper"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/sidecar"
	"lockkeeper/sched"
)

// topicUnit is the unit of an item that researches one topic.
const topicUnit = "topic"

// work does the work of an item.
func (p *Pipeline) work(ctx context.Context, job *sched.Job) error {
	d, err := workOf(&job.Item)
	if err != nil {
		return err
	}
	u, err := p.unitOf(ctx, d)
	if err != nil {
		return err
	}
	if !p.wants(d) || !isCurrent(u, &job.Item, d) {
		return nil // an earlier run wanted it, its plan has changed, or what it was to do is done: what is due is queued anew
	}
	err = p.do(ctx, jobTurn{job: job, locks: p.opt.Locks}, d)
	var paused *pausedError
	if errors.As(err, &paused) {
		return &sched.LaterError{Reason: paused.Error()}
	}
	return err
}

// unitOf reads a unit as far as it concerns a piece of work.
func (p *Pipeline) unitOf(ctx context.Context, d due) (*dossier.Unit, error) {
	if d.kind != string(flow.BatchUnit) {
		return p.opt.Book.Unit(ctx, d.unit)
	}
	u, _, err := p.opt.Book.BatchOf(ctx, d.unit, d.batch)
	return u, err
}

// ended hears that an item has ended, and looks what is due next.
func (p *Pipeline) ended(it lockkeeper.Item) {
	d, err := workOf(&it)
	if err != nil {
		p.tell(News{Kind: NewsWarning, Item: it.ID, Text: err.Error()})
		return
	}
	if it.Status == lockkeeper.ItemError && it.Failure != nil {
		p.tell(News{Kind: NewsFailed, Unit: d.unit, Batch: d.batch, Phase: it.Failure.Phase, Item: it.ID, Text: it.Failure.Reason})
	}
	p.mark(d.unit)
}

// do does a piece of work. Its outcome is a document, or an error.
func (p *Pipeline) do(ctx context.Context, t turn, d due) error {
	switch d.kind {
	case string(flow.BatchUnit):
		return p.runBatch(ctx, t, d.unit, d.batch)
	case string(flow.Screen):
		return p.analyzeScreen(ctx, t, d)
	case topicUnit:
		return p.researchTopic(ctx, d)
	}
	switch d.phase {
	case "analyze":
		return readPhase(ctx, p, t, d, p.opt.Book.PutAnalysis)
	case "extract":
		return readPhase(ctx, p, t, d, p.opt.Book.PutExtract)
	case "synthesize":
		return readPhase(ctx, p, t, d, p.opt.Book.PutSynthesis)
	case "audit":
		return p.audit(ctx, d.unit)
	case "batch_plan":
		return readPhase(ctx, p, t, d, p.putPlan)
	}
	return fmt.Errorf("there is no phase %q", d.phase)
}

// readPhase asks an agent that only reads, and stores its answer.
func readPhase[T any](ctx context.Context, p *Pipeline, t turn, d due, put func(ctx context.Context, unit string, doc T, calls []flow.Call) error) error {
	phase, _ := p.opt.Flow.Phase(d.phase)
	u, err := p.opt.Book.Unit(ctx, d.unit)
	if err != nil {
		return err
	}
	if u.Phase() != d.phase {
		return nil // its document is there: somebody died before that was recorded
	}
	ask := flow.Ask{Files: p.filesOf(d.unit)}
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
	if u.Decisions != nil {
		todo := []flow.Decided{}
		for _, item := range u.Decisions.Items {
			if item.Decision == flow.Todo {
				todo = append(todo, item)
			}
		}
		ask.Items, ask.Todo = todo, text(todo)
	}
	q := question{unit: d.unit, phase: d.phase, form: phase.Answer, purpose: p.opt.Flow.Name + "/" + d.unit + "/" + d.phase}
	return askReader(ctx, p, t, q, phase.Prompt, ask, func(doc T, calls []flow.Call) error { return put(ctx, d.unit, doc, calls) })
}

// askReader asks an agent that only reads: what it changes in its copy is taken out and
// kept, and thrown away with it.
func askReader[T any](ctx context.Context, p *Pipeline, t turn, q question, prompt string, ask flow.Ask, put func(T, []flow.Call) error) (err error) {
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
		if w, err = p.makeCopy(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx), false)) }()
		p.news(NewsStarted, q, "")
		if a, err = p.ask(ctx, t, q, w); err != nil {
			return err
		}
	} else if w != nil {
		defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx), false)) }()
	}
	if w != nil {
		if _, err := p.takeOut(ctx, t, q, w, true); err != nil {
			p.news(NewsWarning, q, "what the agent changed could not be looked at: "+err.Error())
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

// putPlan stores the batches that an agent proposes. Targets that could never land are
// refused at once.
func (p *Pipeline) putPlan(ctx context.Context, unit string, plan flow.Plan, calls []flow.Call) error {
	if err := p.checkTargets(plan.Batches); err != nil {
		return err
	}
	return p.opt.Book.PutPlan(ctx, unit, plan.Batches, calls)
}

// checkTargets refuses write targets that the gate would never let through.
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

// audit holds the ready items against what was decided before.
func (p *Pipeline) audit(ctx context.Context, unit string) error {
	u, err := p.opt.Book.Unit(ctx, unit)
	if err != nil || u.Phase() != "audit" {
		return err
	}
	if err := p.opt.Book.Audit(ctx, unit); err != nil {
		return err
	}
	p.news(NewsDone, question{unit: unit, phase: "audit"}, "")
	return nil
}

// researchTopic sends one topic to the Messages API.
func (p *Pipeline) researchTopic(ctx context.Context, d due) error {
	u, err := p.opt.Book.Unit(ctx, d.unit)
	if err != nil {
		return err
	}
	for _, topic := range u.Topics {
		if topic.Slug != d.batch || topic.State != dossier.Pending {
			continue
		}
		q := question{unit: d.unit, batch: d.batch, phase: "research"}
		p.news(NewsStarted, q, "")
		text, err := p.askAPI(ctx, q, topic.Prompt)
		if err != nil {
			return p.orLater(ctx, err)
		}
		if err := p.opt.Book.Answer(ctx, d.unit, topic.Slug, sidecar.MethodAPI, text, "api"); err != nil {
			return err
		}
		p.news(NewsDone, q, "")
	}
	return nil
}
