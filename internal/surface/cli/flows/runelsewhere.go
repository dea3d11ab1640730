package flows

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// watchElsewhere shows the run that another machine conducts until it ends. Its documents are on
// that machine, so everything comes from the store.
func (r *flowRun) watchElsewhere(ctx context.Context, of *fleet.Run) error {
	ctx, stop := command.Interruptible(ctx)
	defer stop()
	if err := r.mayWatch(of); err != nil {
		return err
	}
	var err error
	if r.flow, err = flow.ByName(of.Flow); err != nil {
		return err
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	r.board = newRunBoard(r)
	if !r.JSON {
		fmt.Fprintf(r.Out, "flow %s; run %s\nconducted on %s, in %s, since %s, grant %s: showing its progress; Ctrl-C closes this view and does not stop the run\n",
			r.flow.Name, of.ID, term.Clean(of.Name), term.Clean(of.Root), term.Stamp(of.Began), lockkeeper.ShortID(of.Grant))
		if given := strings.Join(r.o.conducting, ", "); given != "" {
			fmt.Fprintf(r.Out, "ignored: %s, because the run has started\n", given)
		}
	}
	r.board.begin(ctx, false, func() { leave(errLeft) })
	out, last, err := r.followElsewhere(ctx, of)
	r.board.end()
	if err != nil {
		return r.unwatched(ctx, err)
	}
	where := term.Clean(of.Name)
	if out == nil {
		return fmt.Errorf("the run on %s ended before it said anything about itself", where)
	}
	died := last.Ended.IsZero()
	if !r.JSON && died {
		fmt.Fprintf(r.Out, "the machine %s disappeared before its run was complete\n", where)
	} else if !r.JSON {
		fmt.Fprintf(r.Out, "the run on %s has ended\n", where)
	}
	next := ""
	if died && last.Documents != "" {
		next = "lockkeeper run, which continues it here"
	} else if died {
		next = "lockkeeper run, in " + of.Root + " on " + of.Name
	} else if len(out.Waiting) > 0 {
		next = "lockkeeper decide, in " + of.Root + " on " + of.Name
	}
	if err := r.sumElsewhere(ctx, out, next); err != nil {
		return err
	}
	switch {
	case out.Budget != "":
		return &command.ExitError{Code: command.ExitBudget}
	case died || out.Failed > 0 || out.Unpushed != "" || out.Baseline != nil && out.Baseline.Stopped:
		return &command.ExitError{Code: command.ExitFailed}
	}
	return nil
}

// mayWatch returns an error if the caller asked for a different run than the active one.
func (r *flowRun) mayWatch(of *fleet.Run) error {
	refuse := func(act string) error {
		return &lockkeeper.RefusedError{Act: act, Next: "lockkeeper run, which shows its progress",
			Reason: fmt.Sprintf("a run of the flow %s on %s, in %s, has been active since %s, grant %s; nothing was started", of.Flow, of.Name, of.Root, term.Stamp(of.Began), of.Grant)}
	}
	switch {
	case r.o.New:
		return refuse("starting a new run")
	case r.o.dry:
		return refuse("a dry run")
	case r.o.Flow != "" && r.o.Flow != of.Flow:
		return refuse("starting the flow " + r.o.Flow)
	case r.o.Plan == "":
		return nil
	}
	sum, err := conduct.PlanSum(conduct.PlanPath(r.a, r.o.Plan))
	if err != nil {
		return err
	}
	if sum != of.PlanSum {
		return refuse("starting the plan " + r.o.Plan)
	}
	return nil
}

// followElsewhere shows changes until the run has ended or its machine has disappeared.
func (r *flowRun) followElsewhere(ctx context.Context, of *fleet.Run) (out *run.Outcome, last *fleet.Run, err error) {
	before := map[string]string{}
	f := conduct.Fleet(r.a)
	for last = of; ; {
		if len(last.State) > 0 {
			out = &run.Outcome{}
			if err := json.Unmarshal(last.State, out); err != nil {
				return nil, nil, fmt.Errorf("read the state of the run: %w", err)
			}
			for _, n := range r.changes(before, out.State) {
				r.board.hear(n)
			}
		}
		if !last.Lives() {
			return out, last, nil
		}
		select {
		case <-time.After(command.WatchEvery):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
		now, err := f.Run(ctx)
		if err != nil {
			return nil, nil, err
		}
		if now == nil || now.ID != of.ID {
			return out, last, nil // another run began; this one has ended
		}
		last = now
	}
}

// sumElsewhere prints the end of the run. What landed is known only where its documents are.
func (r *flowRun) sumElsewhere(ctx context.Context, out *run.Outcome, next string) error {
	out.Waiting = acts.OrEmpty(out.Waiting)
	if r.JSON {
		return r.PrintLine(struct {
			Kind string `json:"kind"`
			*run.Outcome
			Next string `json:"next,omitempty"`
		}{"outcome", out, next})
	}
	st := out.State
	complete, failed, all, what := countUnits(out, r.flow)
	fmt.Fprintf(r.Out, "%s: %d of %s complete, %d failed; $%.2f, %d tokens, %s\n", r.flow.Name,
		complete, term.Counted(all, what), failed, st.Spent.USD(), st.Spent.Tokens, term.Counted(st.Spent.Calls, "call"))
	r.failures(ctx, st)
	if asked := countDecisions(out.Waiting); asked != "" {
		fmt.Fprintf(r.Out, "%s\n", asked)
	}
	r.Advise(next)
	return nil
}
