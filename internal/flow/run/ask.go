package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/program"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/machine/process"
	"lockkeeper/sched"
)

// A question is one prompt for an agent.
type question struct {
	unit    string
	batch   string
	phase   string
	purpose string // identifies the call, so that a run after a crash finds its result
	prompt  string
	form    string // the answer's schema
	agent   string // the agent's name; empty: the default agent
	queue   string // the phase in whose rank the call waits for its slot; empty: phase
}

type asked struct {
	agent.Result
	call  flow.Call
	trace trace
	rec   *record
	from  *fleet.Call // the call, if another machine carried it out
}

// call calls an agent in a workspace and retries temporary failures. Each attempt is prepared, has a
// slot while its processes run, and is announced when it has the slot.
func (p *Pipeline) call(ctx context.Context, t *timed, q question, w *workspace.Workspace, told string) (got *asked, err error) {
	adapter, err := p.opt.Agents.Named(q.agent)
	if err != nil {
		return nil, err
	}
	begin := sync.OnceValue(func() error { return p.begin(q, told) })
	_, err = agent.Retry(ctx, p.opt.Agents.Retry, func(ctx context.Context, _ int) (agent.Result, error) {
		if got, err = p.callOnce(ctx, t, q, w, adapter, begin); got == nil {
			return agent.Result{}, err
		}
		return got.Result, err
	})
	return got, p.orPause(err)
}

func (p *Pipeline) callOnce(ctx context.Context, t *timed, q question, w *workspace.Workspace, adapter agent.Adapter, begin func() error) (_ *asked, err error) {
	ready, err := p.prepare(ctx, t, site{w: w, agent: adapter.Name(), asks: q})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ready.close()) }()
	waiting := time.Now()
	if err := t.Phase(ctx, cmp.Or(q.queue, q.phase), sched.PoolAgent); err != nil {
		return nil, err
	}
	if err := begin(); err != nil {
		return nil, err
	}
	if err := p.resting(); err != nil { // the run stopped before this attempt
		return nil, err
	}
	most, done, err := p.shareFor(ctx, adapter)
	if err != nil {
		return nil, err
	}
	defer done()
	tr, err := p.ledger.begin(q.purpose, w.Home(), t.ID(), waiting)
	if err != nil {
		return nil, err
	}
	began := time.Now().UTC()
	log := tr.livelog()
	request := agent.Request{Prompt: q.prompt, Dir: w.Dir(), Env: p.agentEnv(t, w),
		Permission: agent.PermitAll, Schema: flow.AnswerSchema(q.form), MaxUSD: most}
	if q.agent == "" || q.agent == p.opt.Agents.Default {
		request.Model, request.Extra = p.opt.Agents.Model, p.opt.Agents.Args
	}
	res, from, failure := p.callSomewhere(ctx, t, q, w, adapter, request, tr, agent.Options{
		Run: func(ctx context.Context, c agent.Command) (agent.Exit, error) {
			return ready.runAgent(ctx, c)
		},
		Timeout: p.opt.Agents.Timeout, StallAfter: p.opt.Agents.StallAfter,
		Tell: func(e agent.Event) {
			log.tell(e)
			p.watchAgent(ctx, t, q, e)
		},
	})
	if agent.KindOf(failure) == agent.Unfinished && most > 0 && res.CostUSD >= most {
		failure = &shareError{most, failure}
	}
	if res.Note != "" {
		log.tell(agent.Event{At: time.Now(), Kind: agent.EventNotice, Text: res.Note})
	}
	a, err := p.recordCall(q, tr, adapter, began, res, failure)
	if a != nil && from != nil {
		a.from, a.rec.Shared = from, from.ID
		err = errors.Join(err, tr.write(a.rec))
	}
	if err == nil {
		t.answered(a)
	}
	return a, errors.Join(err, log.close())
}

// shareFor reserves a call's share of the remaining budget until done is called. It returns 0 if
// the budget has no limit or the agent program cannot limit its cost.
func (p *Pipeline) shareFor(ctx context.Context, a agent.Adapter) (usd float64, done func(), err error) {
	if named, _ := program.ByName(a.Name()); !named.LimitsCost {
		return 0, func() {}, p.ledger.start()
	}
	calls, err := p.underWay(ctx)
	if err != nil {
		return 0, nil, err
	}
	usd, err = p.ledger.reserve(ctx, min(calls, p.opt.Limits.Agents))
	return usd, func() { p.ledger.release(usd) }, err
}

// underWay counts the work that runs or is queued.
func (p *Pipeline) underWay(ctx context.Context) (n int, err error) {
	p.mu.Lock()
	n = len(p.going)
	p.mu.Unlock()
	items, err := p.items(ctx)
	for _, it := range items {
		if it.Status != lockkeeper.ItemError {
			n++
		}
	}
	return n, err
}

// A shareError reports that a call ended because it spent its share of the budget.
type shareError struct {
	usd float64
	err error
}

func (e *shareError) Error() string {
	return fmt.Sprintf("it used up its share of the budget, $%.2f: %v", e.usd, e.err)
}
func (e *shareError) Unwrap() error { return e.err }

// recordCall counts a call against the budget and records its result.
func (p *Pipeline) recordCall(q question, tr trace, adapter agent.Adapter, began time.Time, res agent.Result, failure error) (*asked, error) {
	cost, warning := p.ledger.count(res, failure)
	if warning != "" {
		p.news(NewsWarning, q, warning)
	}
	output, err := filepath.Rel(p.opt.Root.Dir(), tr.files().Output)
	if err != nil {
		return nil, err
	}
	a := &asked{Result: res, trace: tr, call: flow.Call{
		Agent: adapter.Name(), Phase: q.phase, Model: res.Model, Session: res.Session, USD: float64(cost.MicroUSD) / 1e6, Tokens: cost.Tokens,
		Turns: res.Turns, Began: began, Took: res.Duration, Note: res.Note, Output: filepath.ToSlash(output),
	}}
	for _, d := range res.Denials {
		a.call.Denials = append(a.call.Denials, d.Tool)
	}
	if failure != nil {
		a.call.Error = failure.Error()
	}
	a.rec = &record{Call: a.call, Unit: q.unit, Run: p.ledger.run, Cost: cost, Used: failure != nil}
	return a, errors.Join(failure, tr.write(a.rec))
}

// used records that the result of a call is stored.
func (p *Pipeline) used(a *asked) error {
	a.rec.Used = true
	if err := a.trace.write(a.rec); err != nil || a.from == nil {
		return err
	}
	return p.crew.settle(context.Background(), a.from)
}

// unused returns the result of a completed call that a crashed run did not store, and the home of
// its workspace. It returns nil if there is no such result.
func (p *Pipeline) unused(q question) (a *asked, home string, err error) {
	n, err := p.ledger.last(q.purpose)
	if err != nil || n == 0 {
		return nil, "", err
	}
	tr := p.ledger.trace(q.purpose, n)
	rec, err := tr.record()
	if err != nil || rec != nil && rec.Used {
		return nil, "", err
	}
	adapter, err := p.opt.Agents.Named(q.agent)
	if err != nil {
		return nil, "", err
	}
	if home, err = tr.workspace(); err != nil {
		return nil, "", err
	}
	res, finished, failure := agent.Completed(adapter, tr.files(), flow.AnswerSchema(q.form))
	if rec == nil { // the run crashed before it counted the call
		if a, err = p.recordCall(q, tr, adapter, time.Now().UTC(), res, cutShort(finished, failure)); a == nil {
			return nil, home, err
		}
	} else {
		a = &asked{Result: res, call: rec.Call, trace: tr, rec: rec}
	}
	if !finished || failure != nil {
		return nil, home, nil
	}
	a.from = p.crew.resultOf(q.purpose)
	return a, home, nil
}

// takeOver returns an unused result with the workspace of its agent, or nil if there is no such
// result. If the agent was interrupted, takeOver keeps its changes for lockkeeper rescue.
func (p *Pipeline) takeOver(ctx context.Context, q question) (*asked, *workspace.Workspace, error) {
	a, home, err := p.unused(q)
	if err != nil || home == "" {
		return a, nil, err
	}
	if a == nil {
		if err := p.clear(ctx, workspace.Left{Home: home}); err != nil {
			p.news(NewsWarning, q, "the workspace of an interrupted agent: "+err.Error())
		}
		return nil, nil, nil
	}
	w, err := p.adoptWorkspace(home)
	if err != nil {
		p.news(NewsWarning, q, "the workspace of an agent is gone: "+err.Error())
		return a, nil, nil
	}
	return a, w, nil
}

// The text of errCutShort must not change: call records store it, and readers compare it.
var errCutShort = errors.New("interrupted: the process that ran it ended")

func cutShort(finished bool, failure error) error {
	if failure == nil && !finished {
		return errCutShort
	}
	return failure
}

func (p *Pipeline) agentEnv(t execution, w *workspace.Workspace) []string {
	env := w.Env(p.opt.Env)
	if os.Geteuid() == 0 && p.opt.Sandbox.HoldsWrites() {
		env = append(env, "IS_SANDBOX=1") // Claude Code refuses to run as root without it
	}
	return append(env, "LOCKKEEPER_ITEM="+t.ID(), "LOCKKEEPER_WORKSPACE="+w.Dir())
}

// runAgent runs an agent and returns its slot when all its processes have ended.
func (r *prepared) runAgent(ctx context.Context, c agent.Command) (agent.Exit, error) {
	var exit agent.Exit
	cmd := process.Command{Argv: c.Argv, Dir: c.Dir, Env: c.Env, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		Killed: func(s syscall.Signal) { exit.Signal = s }}
	code, err := r.run(ctx, cmd)
	exit.Code = code
	return exit, errors.Join(err, r.t.ReturnSlots(context.WithoutCancel(ctx)))
}

// watchAgent reports when an agent stalls, continues, or retries a request.
func (p *Pipeline) watchAgent(ctx context.Context, t execution, q question, e agent.Event) {
	switch e.Kind {
	case agent.EventStalled:
		text := lockkeeper.JoinNext(fmt.Sprintf("silent for %s, %s", e.Wait.Round(time.Second), cmp.Or(e.Text, "since it was started")),
			fmt.Sprintf("lockkeeper job output %s, or lockkeeper job cancel %s", t.ID(), t.ID()))
		p.news(NewsStalled, q, text)
		if err := t.Note(ctx, "stalled: "+text); err != nil {
			p.news(NewsWarning, q, err.Error())
		}
	case agent.EventMoved:
		p.news(NewsResumed, q, "it produces output again")
		if err := t.Note(ctx, ""); err != nil {
			p.news(NewsWarning, q, err.Error())
		}
	case agent.EventRetry:
		p.news(NewsWarning, q, "the agent retries a request: "+e.Text)
	}
}

func (p *Pipeline) news(kind NewsKind, q question, text string) {
	p.tell(News{Kind: kind, Unit: q.unit, Batch: q.batch, Phase: q.phase, Text: text})
}

// orPause pauses the whole run if the error is a rate limit or a used-up budget. Every other call
// would fail for the same reason.
func (p *Pipeline) orPause(err error) error {
	var limit *agent.Error
	var budget *agent.BudgetError
	var share *shareError
	switch {
	case errors.As(err, &limit) && limit.Kind == agent.Limit:
		until := limit.ResetAt
		if until.IsZero() {
			until = time.Now().Add(p.opt.Limits.LimitPause)
		}
		p.pauseUntil(until, limit.Error())
		return &pausedError{err}
	case errors.As(err, &budget), errors.As(err, &share) && errors.As(p.ledger.start(), &budget): // the call spent the rest of the budget
		p.exhausted(budget)
		return &pausedError{err}
	case errors.As(err, &share): // the next call gets a larger share
		p.tell(News{Kind: NewsWarning, Text: share.Error()})
		return &pausedError{err}
	}
	return err
}

// A pausedError reports that work stopped because the run is paused.
type pausedError struct{ error }

func (e *pausedError) Unwrap() error { return e.error }
