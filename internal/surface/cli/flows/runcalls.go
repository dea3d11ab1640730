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
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/term"
)

// takeCalls takes calls of the run that another machine conducts.
func (r *flowRun) takeCalls(ctx context.Context, o conduct.Options) (err error) {
	r.board.live = false // calls have lines, and no picture
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
			case e.Dead:
				return lockkeeper.WithNext(fmt.Errorf("the machine %s, which conducted the run, disappeared", e.Run.Name), "lockkeeper run, in "+e.Run.Root+" on "+e.Run.Name)
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
