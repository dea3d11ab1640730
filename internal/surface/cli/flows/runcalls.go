package flows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/term"
)

// A lostError reports that the conductor of a run disappeared.
type lostError struct{ run *fleet.Run }

func (e *lostError) Error() string {
	return fmt.Sprintf("the machine %s, which conducted the run, disappeared", e.run.Name)
}

func (e *lostError) NextStep() string {
	return "lockkeeper run, in " + e.run.Root + " on " + e.run.Name
}

// takePart takes calls of the run that another machine conducts. If that machine disappears, it takes
// the conductor's part, unless another machine is faster.
func (r *flowRun) takePart(ctx context.Context, o conduct.Options) error {
	for {
		err := r.takeCalls(ctx, o)
		lost, ok := errors.AsType[*lostError](err)
		if !ok || r.o.callsOnly {
			return err
		}
		r.o.USD, r.o.Tokens = 0, 0 // the share of this machine; a conductor has the budget of the run
		r.board.hear(run.News{At: r.Now(), Kind: run.NewsWarning, Text: lost.Error() + ": waiting to take its part"})
		orphan, err := r.awaitPart(ctx, lost.run)
		if err != nil {
			return err
		}
		if orphan {
			r.o.noUI = true // the machine was asked for its agents only
			return r.run(ctx)
		}
	}
}

// partEvery is how often a machine tries to take the conductor's part.
const partEvery = time.Second

// awaitPart takes the part of a conductor that disappeared, and returns true. It returns false if another
// machine conducts.
func (r *flowRun) awaitPart(outer context.Context, of *fleet.Run) (bool, error) {
	ctx, stop := command.Interruptible(outer)
	defer stop()
	for ctx.Err() == nil {
		taken, err := r.takeOver(outer) // its lock outlasts ctx
		if taken || err != nil {
			return taken, command.WatchEnd(ctx, err)
		}
		if other, err := conduct.Elsewhere(ctx, r.a); other != nil || err != nil {
			return false, err
		}
		if left, err := conduct.Orphan(ctx, r.a); err != nil {
			return false, err
		} else if left == nil {
			return false, &lostError{of}
		}
		select {
		case <-time.After(partEvery):
		case <-ctx.Done():
		}
	}
	return false, command.WatchEnd(ctx, context.Cause(ctx))
}

// takeOver continues the run of a machine that disappeared, if there is one that the options mean. It
// returns false if there is none, or its lock has not ended.
func (r *flowRun) takeOver(ctx context.Context) (bool, error) {
	of, err := conduct.Orphan(ctx, r.a)
	if err != nil || of == nil || r.o.New || r.o.dry || r.o.Flow != "" && r.o.Flow != of.Flow {
		return false, err
	}
	if r.o.Plan != "" {
		sum, err := conduct.PlanSum(conduct.PlanPath(r.a, r.o.Plan))
		if err != nil || sum != of.PlanSum {
			return false, err
		}
	}
	t, err := conduct.TakeOver(ctx, r.a, of, r.Env, r.board.hear)
	if _, held := errors.AsType[*lockkeeper.BlockedError](err); held {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.o.Options = t.With(r.o.Options)
	r.o.join, r.o.stay = false, false
	r.board.hear(run.News{At: r.Now(), Kind: run.NewsRun, Text: fmt.Sprintf("the run of %s continues here: its documents and calls are in this clone", of.Name)})
	return true, nil
}

// takeCalls takes calls of the run that another machine conducts.
func (r *flowRun) takeCalls(ctx context.Context, o conduct.Options) (err error) {
	say := func(text string) { r.board.hear(run.News{At: r.Now(), Kind: run.NewsRun, Text: text}) }
	o.Tell = r.board.hear
	j, err := conduct.NewJoin(ctx, r.a, o, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close(ctx)) }()
	of, err := conduct.Elsewhere(ctx, r.a)
	if err != nil {
		return err
	}
	if of == nil && !r.o.stay {
		return &lockkeeper.RefusedError{Act: "joining a run", Reason: "no other clone conducts a run of this codebase now", Next: "lockkeeper run on another machine, or lockkeeper run --join --stay here"}
	}
	if !r.JSON {
		where := "waiting for a run"
		if of != nil {
			where = fmt.Sprintf("joined the run of the flow %s on %s, in %s", of.Flow, term.Clean(of.Name), term.Clean(of.Root))
		}
		fmt.Fprintf(r.Out, "%s: agents %d, tests %d; Ctrl-C finishes running calls\n", where, j.Self.Agents, j.Self.Tests)
	}
	came, forget := command.StopSignals()
	defer forget()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	type ending struct {
		run.Ending
		err error
	}
	stop, over := make(chan struct{}), make(chan ending, 1)
	go func() {
		e, err := j.Run(ctx, stop, r.o.stay)
		over <- ending{e, err}
	}()
	var by os.Signal
	var asked time.Time
	for {
		select {
		case e := <-over:
			switch {
			case e.err != nil:
				return e.err
			case by != nil && !asked.IsZero() && ctx.Err() != nil:
				return command.KilledBy(by.(syscall.Signal), nil)
			case e.Dead && by == nil:
				return &lostError{e.Run}
			case by == nil:
				say("the run has ended")
			}
			return nil
		case by = <-came:
			if now := r.Now(); asked.IsZero() {
				asked = now
				close(stop)
				say("stopping: running calls finish; press Ctrl-C again to stop them, they return to the queue")
			} else if now.Sub(asked) >= jobs.OneAsk {
				end(errEnded)
			}
		}
	}
}
