package flows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/store"
)

// join shows the run of another process until it ends. It changes nothing.
func (r *flowRun) join(ctx context.Context, conductor lockkeeper.ConflictInfo) error {
	ctx, stop := command.Interruptible(ctx)
	defer stop()
	seen, err := r.c.Survey(ctx) // surveys the run as it is now
	if err != nil {
		return err
	}
	if err := r.mayJoin(ctx, seen, conductor); err != nil {
		return err
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	r.board = newRunBoard(r)
	if err := r.introduce(seen, conductor.Holder); err != nil {
		return err
	}
	if !r.JSON {
		fmt.Fprintf(r.Out, "run by %s since %s, grant %s: showing its progress; Ctrl-C closes this view and does not stop the run\n",
			term.Clean(conductor.Holder), term.Stamp(conductor.AcquiredAt), lockkeeper.ShortID(conductor.GrantID))
		if given := strings.Join(r.o.conducting, ", "); given != "" {
			fmt.Fprintf(r.Out, "ignored: %s, because the run has started\n", given)
		}
	}
	r.board.begin(ctx, false, func() { leave(errLeft) })
	out, err := r.follow(ctx, seen, conductor.GrantID)
	r.board.end()
	if err != nil {
		return r.unwatched(ctx, err)
	}
	died, err := r.died(ctx, conductor.GrantID)
	if err != nil {
		return err
	}
	end, next := "the run of %s has ended\n", r.nextStep(out, false)
	if died {
		end, next = "the process of %s died before its run was complete: no work is lost, and unfinished items are queued again\n", r.again()
	}
	if !r.JSON {
		fmt.Fprintf(r.Out, end, term.Clean(conductor.Holder))
	}
	if err := r.sumUp(ctx, out, next); err != nil {
		return err
	}
	if died || out.Failed > 0 {
		return &command.ExitError{Code: command.ExitFailed}
	}
	return nil
}

// errLeft is the cause if the person closed the screen of a run of another process.
var errLeft = errors.New("the screen was closed")

// unwatched returns the error that ends the view of a run of another process. A person who closes the
// screen ends it without one.
func (r *flowRun) unwatched(ctx context.Context, err error) error {
	if context.Cause(ctx) == errLeft {
		r.Advise("lockkeeper top, which shows the run again; it goes on")
		return nil
	}
	return command.WatchEnd(ctx, err)
}

// mayJoin returns an error if the caller asked for a different run than the active one.
func (r *flowRun) mayJoin(ctx context.Context, seen *run.Pipeline, conductor lockkeeper.ConflictInfo) error {
	refuse := func(act, what, next string) error {
		return &lockkeeper.RefusedError{Act: act, Next: next,
			Reason: fmt.Sprintf("%s by %s has been active since %s, grant %s; nothing was started", what, conductor.Holder, term.Stamp(conductor.AcquiredAt), conductor.GrantID)}
	}
	const watch = "lockkeeper run, which shows its progress"
	if r.o.New {
		return refuse("starting a new run", "a run", watch)
	}
	last, err := conduct.CurrentRun(r.a)
	if err != nil || last == nil || r.o.Plan == "" {
		return err
	}
	later := watch + "; after it has ended, " + r.again()
	if path := conduct.PlanPath(r.a, r.o.Plan); path != last.Plan {
		return refuse("starting the plan "+r.o.Plan, "a run of the plan "+last.Plan, later)
	}
	info, err := os.Stat(last.Plan)
	if err != nil {
		return err
	}
	if known, err := seen.KnowsPlan(ctx); err != nil || known || info.ModTime().Before(conductor.AcquiredAt) {
		return err
	}
	return refuse("starting the plan "+r.o.Plan+" as it is now", "a run of its version from before "+term.Stamp(info.ModTime()), later)
}

// follow shows changes until the other process ends.
func (r *flowRun) follow(ctx context.Context, seen *run.Pipeline, grant string) (*run.Outcome, error) {
	events, err := r.q.Feed(ctx)
	if err != nil {
		return nil, err
	}
	defer events.Close() // the feed only reads, so its error does not matter
	before := map[string]string{}
	for last := events.Last(); ; {
		ended, err := r.hasEnded(ctx, grant) // hasEnded is asked before the view is read, so that the last changes are shown
		if err != nil {
			return nil, err
		}
		out, err := seen.Outcome(ctx)
		if err != nil {
			return nil, err
		}
		for _, n := range r.changes(before, out.State) {
			r.board.hear(n)
		}
		if ended {
			return out, nil
		}
		wait, done := context.WithTimeout(ctx, command.WatchEvery)
		news, err := events.Next(wait, last)
		done()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case len(news) > 0:
			last = news[len(news)-1].Seq
		case !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}
	}
}

// hasEnded reports whether a grant or its process is gone.
func (r *flowRun) hasEnded(ctx context.Context, grant string) (bool, error) {
	e, err := r.a.Locks.Request(ctx, grant)
	if err != nil || e == nil {
		return true, err
	}
	return e.Process != nil && r.a.Host.Liveness(*e.Process) == lockkeeper.ProcessDead, nil
}

// died reports whether an ended grant was not released by its holder.
func (r *flowRun) died(ctx context.Context, grant string) (bool, error) {
	for ev, err := range view.Events(ctx, r.a, store.EventQuery{Latest: true}) {
		if err != nil {
			return false, err
		}
		if ev.GrantID == grant {
			return ev.Kind != lockkeeper.EventReleased, nil
		}
	}
	return true, nil // the event log does not reach back that far
}

// changes returns the news since the previous call.
func (r *flowRun) changes(before map[string]string, st *run.State) (news []run.News) {
	add := func(unit, batch, status, pending, reason string) {
		name, now := workName(unit, batch), status+" "+pending
		if before[name] == now {
			return
		}
		before[name] = now
		n := run.News{At: r.Now(), Kind: run.NewsRun, Unit: unit, Batch: batch, Phase: pending, Text: status}
		switch status {
		case flow.Failed:
			n.Kind, n.Text = run.NewsFailed, reason
		case flow.Complete:
			n.Kind, n.Text = run.NewsDone, "complete"
		case flow.NoChange:
			n.Kind, n.Text = run.NewsNoChange, ""
		}
		news = append(news, n)
	}
	for _, u := range st.Units {
		add(u.Name, "", u.Status, u.Pending, u.Error)
		for _, b := range u.Batches {
			add(u.Name, b.ID, b.Status, b.Pending, b.Error)
		}
	}
	return news
}

// countDecisions returns how many decisions of each kind wait for a person, or "".
func countDecisions(open []progress.Decision) string {
	count := map[progress.Kind]int{}
	for _, g := range open {
		count[g.Ref.Kind]++
	}
	var parts []string
	for _, kind := range progress.Kinds() {
		if n := count[kind]; n > 0 {
			parts = append(parts, term.Counted(n, string(kind)))
		}
	}
	if parts == nil {
		return ""
	}
	return strings.Join(parts, ", ") + term.Plural(len(open), " needs", " need") + " your decision"
}
