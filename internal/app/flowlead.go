package app

import (
	"context"
	"errors"
	"fmt"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/pipeline"
	"lockkeeper/lock"
)

// CheckRun refuses what could not be run, before anything is begun. Seen is a look at the
// same flow.
func (a *App) CheckRun(ctx context.Context, o FlowOptions, seen *pipeline.Pipeline) error {
	if err := a.CheckAgent(seen.Agents()...); err != nil {
		return err
	}
	c := a.Config
	if usd := max(o.USD, float64(c.Run.BudgetUSD)); usd > 0 && c.Agent.Name != "claude" && o.Tokens == 0 && c.Run.BudgetTokens == 0 {
		return &lockkeeper.InputError{Field: "budget", Value: fmt.Sprint(usd), Reason: "the agent " + c.Agent.Name + " does not say what its calls cost, so money cannot be limited",
			Next: "limit the tokens with --tokens, where it counts them, or leave the budget out"}
	}
	if o.Flow != flow.Tasks().Name || o.Plan != "" {
		return nil
	}
	if conductor, err := a.Conductor(ctx); conductor != "" || err != nil {
		return err
	}
	if last, err := a.CurrentRun(); err != nil || last != nil && last.Plan != "" {
		return err
	}
	return &lockkeeper.InputError{Field: "plan", Reason: "the flow tasks needs one, also to go on", Next: "lockkeeper run --plan tasks.yaml"}
}

// Lead is the part of whoever conducts a flow: the lease of the conductor, and the
// pipeline.
type Lead struct {
	*pipeline.Pipeline
	app   *App
	lease *lock.Grant
}

// Lead takes the lease of the conductor and makes the pipeline. Somebody else who has the
// lease is a *lockkeeper.BlockedError.
func (a *App) Lead(ctx context.Context, holder string, o FlowOptions) (*Lead, error) {
	lease, err := a.Conduct(ctx, holder)
	if err != nil {
		return nil, err
	}
	p, err := a.Pipeline(ctx, o)
	if err != nil {
		return nil, errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
	}
	return &Lead{Pipeline: p, app: a, lease: lease}, nil
}

// Run conducts until nothing goes on by itself, somebody ends it, or the lease is lost,
// and says how far it came. Of a whole flow that is complete the run is finished.
func (l *Lead) Run(ctx context.Context, o pipeline.RunOptions) (*pipeline.Outcome, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(l.lease.Context(), func() { end(l.lost()) })()
	ran, err := l.Pipeline.Run(ctx, o)
	if lost := l.lost(); lost != nil {
		return nil, errors.Join(lost, err)
	}
	if err != nil && !isEnding(ctx, err) {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	out, err := l.Glance(ctx) // once all that ran has ended
	if err != nil {
		return nil, err
	}
	out.Stopped = ran == nil || ran.Stopped
	if whole := len(l.Units()); whole > 0 && out.Complete == whole && len(o.Only) == 0 {
		err = l.app.EndRun(ctx)
	}
	return out, err
}

// isEnding reports whether an error only says that what was done was told to end.
func isEnding(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// lost is why the lease is gone; nil: it is not.
func (l *Lead) lost() error {
	if l.lease.Context().Err() == nil {
		return nil
	}
	return fmt.Errorf("the lease of the conductor is lost: %w", context.Cause(l.lease.Context()))
}

// Close gives the lease back.
func (l *Lead) Close(ctx context.Context) error { return l.lease.Release(context.WithoutCancel(ctx)) }
