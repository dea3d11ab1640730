package cli

import (
	"context"
	"errors"
	"fmt"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/pipeline"
)

// join shows the run that somebody else conducts, until it ends. It changes nothing
// there.
func (r *flowRun) join(ctx context.Context, conductor lockkeeper.ConflictInfo) error {
	if r.o.fresh {
		return &lockkeeper.RefusedError{Act: "beginning a new run", Reason: fmt.Sprintf("%s conducts one since %s, grant %s", conductor.Holder, stamp(conductor.AcquiredAt), conductor.GrantID),
			Next: "lockkeeper run, to see how far it is"}
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	seen, err := r.survey(ctx) // of the run as it is now
	if err != nil {
		return err
	}
	r.board = newRunBoard(r)
	if err := r.introduce(ctx, seen, conductor.Holder); err != nil {
		return err
	}
	if !r.json {
		fmt.Fprintf(r.Out, "conducted by %s since %s, grant %s: this shows what happens there, and Ctrl-C ends only this view\n",
			clean(conductor.Holder), stamp(conductor.AcquiredAt), conductor.GrantID)
	}
	out, err := r.follow(ctx, seen, conductor.GrantID)
	r.board.end()
	if err != nil {
		return watchEnd(ctx, err)
	}
	if !r.json {
		fmt.Fprintf(r.Out, "the run that %s conducted has ended\n", clean(conductor.Holder))
	}
	if err := r.sumUp(ctx, out, r.nextStep(out, false)); err != nil {
		return err
	}
	if out.Failed > 0 {
		return &codedError{exit: exitFailed}
	}
	return nil
}

// follow tells what changes until whoever conducts has ended.
func (r *flowRun) follow(ctx context.Context, seen *pipeline.Pipeline, grant string) (*pipeline.Outcome, error) {
	events, err := r.q.Feed(ctx)
	if err != nil {
		return nil, err
	}
	defer events.Close() // it only reads
	before := map[string]string{}
	for last := events.Last(); ; {
		ended, err := r.hasEnded(ctx, grant) // looked at first, so that what it did last is seen
		if err != nil {
			return nil, err
		}
		view, err := r.look(ctx, seen)
		if err != nil {
			return nil, err
		}
		for _, n := range r.changes(before, view.out.State) {
			r.board.hear(n)
		}
		if ended {
			return view.out, nil
		}
		if r.board.live {
			r.board.draw(view)
		}
		wait, done := context.WithTimeout(ctx, watchEvery)
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

// hasEnded reports whether a grant is gone, or the process that has it.
func (r *flowRun) hasEnded(ctx context.Context, grant string) (bool, error) {
	e, err := r.a.Locks.Entry(ctx, grant)
	if err != nil || e == nil {
		return true, err
	}
	return e.Process != nil && r.a.Host.Life(*e.Process) == lockkeeper.LifeDead, nil
}

// changes is the news between two looks.
func (r *flowRun) changes(before map[string]string, st *pipeline.State) (news []pipeline.News) {
	add := func(unit, batch, status, pending, reason string) {
		name, now := workName(unit, batch), status+" "+pending
		if before[name] == now {
			return
		}
		before[name] = now
		n := pipeline.News{At: r.Now(), Kind: pipeline.NewsRun, Unit: unit, Batch: batch, Phase: pending, Text: status}
		switch status {
		case flow.Failed:
			n.Kind, n.Text = pipeline.NewsFailed, reason
		case flow.Complete:
			n.Kind, n.Text = pipeline.NewsDone, "complete"
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
