package conduct

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent/program"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/flow/sidecar"
	"lockkeeper/internal/job"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/lock"
)

// A Conductor conducts one run of a flow, for a command or for a server. It finds once what
// the pipeline is made of: the machine, the agents, the repository, the prompts.
type Conductor struct {
	Flow flow.Flow

	project *project.Project
	opt     Options
	policy  *progress.Policy
	parts   run.Options
}

// New prepares a run, and begins nothing.
func New(ctx context.Context, a *project.Project, o Options) (*Conductor, error) {
	policy, err := o.Policy()
	if err != nil {
		return nil, err
	}
	if o.Flow, err = FlowName(a, o.Flow, o.Plan); err != nil {
		return nil, err
	}
	parts, err := assemble(ctx, a, o)
	if err != nil {
		return nil, err
	}
	return &Conductor{Flow: parts.Flow, project: a, opt: o, policy: policy, parts: parts}, nil
}

// Look surveys the units of the run with a pipeline that begins nothing. It looks at the run
// as it is now: another process may have begun it.
func (c *Conductor) Look(ctx context.Context) (*run.Pipeline, error) {
	opt := c.parts
	opt.Tell = nil
	if err := withInputs(c.project, &opt, c.opt); err != nil {
		return nil, err
	}
	var err error
	if !c.opt.New {
		if opt.Run, err = goingOn(c.project, c.Flow.Name); err != nil {
			return nil, err
		}
	}
	seen, err := c.pipeline(opt)
	if err != nil {
		return nil, err
	}
	return seen, seen.Survey(ctx, c.opt.Only)
}

// pipeline makes a pipeline, with a queue of its own.
func (c *Conductor) pipeline(opt run.Options) (*run.Pipeline, error) {
	if c.project.Config.Run.Locking == "on" {
		q, err := job.Scheduler(c.project, opt.Limits.Agents)
		if err != nil {
			return nil, err
		}
		opt.Locks, opt.Queue = c.project.Locks, q
	}
	return run.New(opt)
}

// Check refuses what could not be run, before anything is begun. Seen is a look at the run.
func (c *Conductor) Check(ctx context.Context, seen *run.Pipeline) error {
	a, cfg := c.project, c.project.Config
	if err := CheckAgent(a, seen.Agents()...); err != nil {
		return err
	}
	named, _ := program.ByName(cfg.Agent.Name)
	if usd := max(c.opt.USD, float64(cfg.Run.BudgetUSD)); usd > 0 && !named.LimitsCost && c.opt.Tokens == 0 && cfg.Run.BudgetTokens == 0 {
		return &lockkeeper.InputError{Field: "budget", Value: fmt.Sprint(usd), Reason: "the agent " + cfg.Agent.Name + " does not say what its calls cost, so money cannot be limited",
			Next: "limit the tokens with --tokens, where it counts them, or leave the budget out"}
	}
	if c.Flow.Source != flow.FromPlan || c.opt.Plan != "" {
		return nil
	}
	if holder, err := Holder(ctx, a); holder != "" || err != nil {
		return err
	}
	if last, err := CurrentRun(a); err != nil || last != nil && last.Plan != "" {
		return err
	}
	return &lockkeeper.InputError{Field: "plan", Reason: "the flow " + c.Flow.Name + " needs one, also to resume", Next: "lockkeeper run --plan tasks.yaml"}
}

// Legacy returns a warning about documents of an earlier pipeline that the run leaves alone;
// empty: there are none.
func (c *Conductor) Legacy() (string, error) {
	if c.Flow.Source != flow.Codebase {
		return "", nil
	}
	dir, found, err := sidecar.FindLegacy(c.project.Root.Dir())
	if err != nil || !found || c.project.Config.Run.SidecarDir == filepath.Base(dir) {
		return "", err
	}
	return fmt.Sprintf("documents of an earlier pipeline in %s are ignored; to continue with them, set run.sidecar_dir: %s", dir, filepath.Base(dir)), nil
}

// Lead takes the conductor's lock and begins the run, or resumes it. If another process
// conducts, Lead returns a *lockkeeper.BlockedError.
func (c *Conductor) Lead(ctx context.Context) (*Lead, error) {
	holder, err := process.Holder()
	if err != nil {
		return nil, err
	}
	lease, err := Lease(ctx, c.project, holder)
	if err != nil {
		return nil, err
	}
	p, err := c.begin(ctx)
	if err != nil {
		return nil, errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
	}
	c.opt.New = false // from here on it is the one under way
	return &Lead{Pipeline: p, c: c, lease: lease}, nil
}

func (c *Conductor) begin(ctx context.Context) (*run.Pipeline, error) {
	opt := c.parts
	if c.Flow.Source == flow.FromPlan && opt.Tasks == nil {
		return nil, &lockkeeper.InputError{Field: "plan", Reason: "the flow " + c.Flow.Name + " needs one", Next: "lockkeeper run --plan tasks.yaml"}
	}
	warning, err := c.Legacy()
	if err != nil {
		return nil, err
	}
	if warning != "" && opt.Tell != nil {
		opt.Tell(run.News{At: time.Now(), Kind: run.NewsWarning, Text: warning})
	}
	if opt.Gate, err = c.project.Gate(); err != nil { // which makes what it needs, where it is new
		return nil, err
	}
	if opt.Run, err = runFor(ctx, c.project, c.opt); err != nil {
		return nil, err
	}
	return c.pipeline(opt)
}

// A Lead conducts: it holds the conductor's lock, and the pipeline.
type Lead struct {
	*run.Pipeline
	c     *Conductor
	lease *lock.Grant
}

// Lease takes the conductor's lock for a holder. If another process holds it, Lease returns a
// *lockkeeper.BlockedError.
func Lease(ctx context.Context, a *project.Project, holder string) (*lock.Grant, error) {
	self, err := process.Self() // whose death ends the lease at once
	if err != nil {
		return nil, err
	}
	g, err := a.Locks.TryAcquire(ctx, lockkeeper.Request{Holder: holder, Locks: conductorLock(), Process: &self})
	if err != nil {
		return nil, err
	}
	g.Keep()
	return g, nil
}

// Run conducts until every remaining step needs a person, ctx ends, or the lease is lost, and
// returns how far it came. When stop is closed nothing new starts. If wants is not nil, it
// says which units and parts go on, in place of Options.Only. A complete run is marked ended.
func (l *Lead) Run(ctx context.Context, stop <-chan struct{}, wants func(unit, part string) bool) (*run.Outcome, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(l.lease.Context(), func() { end(l.lost()) })()
	o := l.c.opt
	if wants != nil {
		o.Only = nil
	}
	ran, err := l.Pipeline.Run(ctx, run.RunOptions{Only: o.Only, Auto: l.c.policy, By: o.By.Name, Wait: o.Wait, Retry: o.Retry, Stop: stop, Wants: wants})
	if lost := l.lost(); lost != nil {
		return nil, errors.Join(lost, err)
	}
	if err != nil && !isEnding(ctx, err) {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	out, err := l.Outcome(ctx) // once all that ran has ended
	if err != nil {
		return nil, err
	}
	out.Stopped = ran == nil || ran.Stopped
	if whole := len(l.Units()); whole > 0 && out.Complete == whole && len(o.Only) == 0 {
		err = EndRun(ctx, l.c.project)
	}
	return out, err
}

// isEnding reports whether an error only says that the work was told to end.
func isEnding(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// lost returns why the lease is gone; nil: it is not.
func (l *Lead) lost() error {
	if l.lease.Context().Err() == nil {
		return nil
	}
	return fmt.Errorf("the lease of the conductor is lost: %w", context.Cause(l.lease.Context()))
}

// Close releases the conductor's lock.
func (l *Lead) Close(ctx context.Context) error { return l.lease.Release(context.WithoutCancel(ctx)) }
