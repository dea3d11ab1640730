package run

import (
	"context"
	"slices"
	"time"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/sched"
)

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
		err := p.enqueue(ctx, workItem{unit: u.Name, kind: topicUnit, part: topic.Slug, phase: phase.Name, pools: []string{sched.PoolAPI}})
		if err != nil {
			return err
		}
	}
	return nil
}

// askAPI asks the Messages API and counts the cost.
func (p *Pipeline) askAPI(ctx context.Context, q question, prompt string) (string, error) {
	q.purpose = "research/" + q.unit + "/" + q.batch
	var said string
	_, err := agent.Retry(ctx, p.opt.Agents.Retry, func(ctx context.Context, _ int) (agent.Result, error) {
		if err := p.ledger.start(); err != nil {
			return agent.Result{}, err
		}
		tr, err := p.ledger.begin(q.purpose, "", "")
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
		if err := tr.write(&record{Call: call, Unit: q.unit, Run: p.ledger.run, Cost: cost, Used: true}); err != nil {
			return res, err
		}
		return res, failure
	})
	return said, err
}
