package web

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/surface/acts"
)

func done(format string, args ...any) said {
	return said{Changed: true, Lines: []string{fmt.Sprintf(format, args...)}}
}

func (d *Dashboard) item(ctx context.Context, f form) (*lockkeeper.Item, error) {
	q, err := job.Open(d.app)
	if err != nil {
		return nil, err
	}
	it, err := q.Find(ctx, f.Get("item"))
	if err == nil && it == nil {
		err = &lockkeeper.InputError{Field: "item", Value: f.Get("item"), Reason: "unknown item", Next: "see the page Work"}
	}
	return it, err
}

// retry puts a failed item back into the queue. An item of a flow gets the note for its next
// agent.
func retry(d *Dashboard, ctx context.Context, f form) (said, error) {
	it, err := d.item(ctx, f)
	if err != nil {
		return said{}, err
	}
	name, note := run.FlowOf(it), f.Get("note")
	if name == "" {
		if it, err = acts.RetryItem(ctx, d.app, it, note, f.who.Actor()); err != nil {
			return said{}, err
		}
		return done("%s (%s) is queued again, in the phase %s.", it.Workflow, it.ID, plain(it.Phase)), nil
	}
	decider, err := acts.Open(ctx, d.app, name, f.who.Actor())
	if err != nil {
		return said{}, err
	}
	v, err := decider.RetryItem(ctx, it, note)
	return verdict(decider, v, err)
}

// cancel cancels an item. It stops a running item only if the page showed it as running.
func cancel(d *Dashboard, ctx context.Context, f form) (said, error) {
	it, err := d.item(ctx, f)
	if err != nil {
		return said{}, err
	}
	q, err := job.Open(d.app)
	if err != nil {
		return said{}, err
	}
	ran := it.IsHolding()
	if ran && f.Get("was") != string(it.Status) {
		return said{}, &lockkeeper.RefusedError{Act: "cancel " + it.ID, Reason: "it has started since the page was loaded: it would lose its locks and be stopped", Next: "reload the page, then cancel it"}
	}
	if it, err = q.Cancel(ctx, it.ID, f.who.Actor(), f.Get("reason")); err != nil {
		return said{}, err
	}
	s := done("%s (%s) is canceled; it can be retried.", it.Workflow, it.ID)
	if ran {
		s.Lines = append(s.Lines, "Its processes were stopped.")
	}
	return s, nil
}

// undo reverses the changes of a batch or of one landing.
func undo(d *Dashboard, ctx context.Context, f form) (said, error) {
	by := f.who.Actor()
	var u *acts.Undone
	if seq := f.Get("landing"); seq != "" {
		n, err := strconv.ParseUint(seq, 10, 64)
		if err != nil {
			return said{}, &lockkeeper.InputError{Field: "landing", Value: seq, Reason: "not a number", Next: "reload the page"}
		}
		if u, err = acts.UndoLanding(ctx, d.app, n, acts.Changer{Actor: by}, acts.Holding(d.app, by)); err != nil {
			return said{}, err
		}
	} else {
		if err := f.needs("unit", "batch"); err != nil {
			return said{}, err
		}
		decider, err := d.decider(ctx, f)
		if err != nil {
			return said{}, err
		}
		if u, err = decider.UndoBatch(ctx, f.Get("unit"), f.Get("batch"), acts.Holding(d.app, by)); err != nil {
			return said{}, err
		}
	}
	return undone(u), nil
}

func undone(u *acts.Undone) said {
	s := done("%s restored: %s.", counted(len(u.Paths), "path"), strings.Join(u.Paths[:min(len(u.Paths), linesSaid)], ", "))
	if more := len(u.Paths) - linesSaid; more > 0 {
		s.Lines[0] = fmt.Sprintf("%s, and %d more.", strings.TrimSuffix(s.Lines[0], "."), more)
	}
	b := u.Batch
	switch {
	case b == nil:
	case b.Undone:
		s.Lines = append(s.Lines, "Batch "+b.Name()+" is undone.")
	default:
		s.Lines = append(s.Lines, fmt.Sprintf("Batch %s still has %s in the tree.", b.Name(), counted(len(b.Left), "landing")))
	}
	if b != nil && b.Commit != "" {
		s.Lines = append(s.Lines, "Git commit "+b.Commit+" still exists: commit the restored files.")
	}
	return s
}

func (d *Dashboard) conductor(act string) (*acts.Runs, error) {
	if d.runs == nil {
		return nil, &lockkeeper.RefusedError{Act: act, Reason: "this server cannot start runs", Next: "lockkeeper run"}
	}
	return d.runs, nil
}

func start(d *Dashboard, ctx context.Context, f form) (said, error) {
	runs, err := d.conductor("start")
	if err != nil {
		return said{}, err
	}
	o := conduct.Options{Flow: f.Get("flow"), Plan: f.Get("plan"), Only: strings.Fields(f.Get("only")), Auto: f.Get("auto"),
		Retry: f.Get("retry") != "", New: f.Get("new") != "", Wait: true, By: f.who.Actor()}
	for name, set := range map[string]func(text string) error{
		"slots":  func(text string) (err error) { o.Slots, err = strconv.Atoi(text); return err },
		"budget": func(text string) (err error) { o.USD, err = strconv.ParseFloat(text, 64); return err },
	} {
		if text := f.Get(name); text != "" && (set(text) != nil || strings.HasPrefix(text, "-")) {
			return said{}, &lockkeeper.InputError{Field: name, Value: text, Reason: "not a number above 0", Next: "leave it empty for the configured value"}
		}
	}
	begun, err := runs.Start(ctx, o)
	if err != nil {
		return said{}, err
	}
	return done("The flow %s runs, with %s.", begun.Flow, counted(len(begun.Units), "unit")), nil
}

func stop(d *Dashboard, ctx context.Context, f form) (said, error) {
	runs, err := d.conductor("stop")
	if err != nil {
		return said{}, err
	}
	o := acts.StopOptions{Run: f.Get("run"), Now: f.Get("now") != ""}
	if err := runs.Stop(ctx, o, f.who.Actor()); err != nil {
		return said{}, err
	}
	if o.Now {
		return done("The run has stopped. Start it again to resume it."), nil
	}
	return done("Nothing new starts: the run stops when its agents have finished."), nil
}

func startPhase(d *Dashboard, ctx context.Context, f form) (said, error) {
	runs, err := d.conductor("start")
	if err != nil {
		return said{}, err
	}
	if err := runs.Phase(ctx, f.Get("unit"), f.Get("phase"), f.who.Actor()); err != nil {
		return said{}, err
	}
	return done("%s of %s is started.", plain(f.Get("phase")), f.Get("unit")), nil
}

// forceRelease releases a grant of the holder that the page showed.
func forceRelease(d *Dashboard, ctx context.Context, f form) (said, error) {
	e, err := d.app.Locks.Request(ctx, f.Get("grant"))
	if err != nil {
		return said{}, err
	}
	if e == nil {
		return said{}, &lockkeeper.NotHeldError{GrantID: f.Get("grant"), Reason: "it is gone: released, expired or recovered", Next: "reload the page Locks"}
	}
	unreached := acts.Unreached(d.app, e)
	if err := acts.ForceRelease(ctx, d.app, e, f.Get("holder"), f.Get("reason"), f.who.Actor()); err != nil {
		return said{}, err
	}
	if unreached != "" {
		return done("The grant of %s is released; %s.", e.Holder, unreached), nil
	}
	return done("The grant of %s is released; its processes were stopped.", e.Holder), nil
}

// clearLocks releases all grants. It is refused if a grant was made since the page was shown.
func clearLocks(d *Dashboard, ctx context.Context, f form) (said, error) {
	if f.Get("confirm") != "clear" {
		return said{}, &lockkeeper.RefusedError{Act: "clear", Reason: "not confirmed; no lock was changed", Next: "type clear"}
	}
	if err := f.needs("reason"); err != nil {
		return said{}, err
	}
	shown, err := strconv.ParseUint(f.Get("seq"), 10, 64)
	if err != nil {
		return said{}, &lockkeeper.InputError{Field: "seq", Value: f.Get("seq"), Reason: "not a number", Next: "reload the page"}
	}
	cleared, err := acts.ClearShown(ctx, d.app, shown, f.Get("reason"), f.who.Actor())
	if err != nil {
		return said{}, err
	}
	s := said{Changed: len(cleared.Freed) > 0}
	for _, kept := range cleared.Kept {
		s = s.with(fmt.Errorf("the grant of %s was not released: %w", kept.Holder, kept.Err))
	}
	what := "All locks are cleared."
	if s.Bad {
		what = "Not all locks are cleared."
	}
	s.Lines = slices.Insert(s.Lines, 0, fmt.Sprintf("%s freed. %s", counted(len(cleared.Freed), "grant"), what))
	return s, nil
}
