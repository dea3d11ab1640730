package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
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
	out, err := r.follow(ctx, seen, conductor.GrantID)
	r.board.end()
	if err != nil {
		return command.WatchEnd(ctx, err)
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
		view, err := r.view(ctx, seen)
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

// waitsShown is how many waiting items a picture explains. Of tasks, each has a line of its own.
const (
	waitsShown     = 3
	taskWaitsShown = 100
)

type runView struct {
	p      *program
	flow   flow.Flow
	out    *run.Outcome
	usd    float64 // the budget; 0: no limit
	taken  map[string]int
	limits map[string]int
	waits  []*sched.Explanation
	idle   map[string]string // the pool whose slot a dispatched item waits for, by item
}

// lines returns the picture: a summary, as many units as there is room for, and the waiting items with their
// blockers.
func (v *runView) lines(took time.Duration, room int) []string {
	lines := []string{v.summary(took)}
	if machines := v.out.State.Machines; len(machines) > 1 {
		for _, m := range machines {
			lines = append(lines, "  "+term.Clean(m.String()))
		}
	}
	if v.flow.OneUnit != "" {
		return append(lines, v.tasks(max(1, room-len(lines)))...)
	}
	var waits []string
	for _, e := range v.waits {
		waits = append(waits, fmt.Sprintf("  waits: %s (%s) for %s", jobs.Title(&e.Item), e.Item.ID, jobs.WaitOf(v.p.Program, e)))
	}
	room = max(1, room-len(lines)-len(waits))
	return append(append(lines, v.units(room)...), waits...)
}

func (v *runView) summary(took time.Duration) string {
	st := v.out.State
	complete, failed, all, _ := countUnits(v.out, v.flow)
	parts := []string{fmt.Sprintf("%s, %s: %d of %d complete, %d failed", v.flow.Name, term.Span(took), complete, all, failed)}
	parts = append(parts, fmt.Sprintf("agents %d/%d, tests %d/%d", v.taken[sched.PoolAgent], v.limits[sched.PoolAgent], v.taken[sched.PoolTest], v.limits[sched.PoolTest]))
	parts = append(parts, money(st, v.usd))
	if asked := countDecisions(v.out.Waiting); asked != "" {
		parts = append(parts, asked)
	}
	return strings.Join(parts, "; ")
}

func money(st *run.State, limit float64) string {
	text := fmt.Sprintf("$%.2f", st.Spent.USD())
	if limit > 0 {
		text += fmt.Sprintf(" of $%.2f", limit)
	}
	if st.Rest > 0 {
		text += fmt.Sprintf(", ≈$%.2f to go", st.Rest)
	}
	return text
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

// units returns the lines of the units, active ones first.
func (v *runView) units(room int) []string {
	list := slices.Clone(v.out.State.Units)
	slices.SortStableFunc(list, func(a, b run.UnitState) int { return cmp.Compare(v.order(a), v.order(b)) })
	left := 0
	if len(list) > room {
		left = len(list) - room + 1
		list = list[:room-1]
	}
	wide := 0
	for _, u := range list {
		wide = max(wide, len([]rune(u.Name)))
	}
	wide = min(wide, jobs.NameWidth)
	var lines []string
	for _, u := range list {
		lines = append(lines, fmt.Sprintf("  %-*s  %s  %s", wide, term.Shorten(term.Clean(u.Name), wide), v.marks(u), v.state(u)))
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", left))
	}
	return lines
}

// order returns the rank of a unit in the picture.
func (v *runView) order(u run.UnitState) int {
	switch u.Status {
	case flow.Failed:
		return 1
	case flow.Queued:
		return 2
	case flow.Complete:
		return 3
	}
	return 0
}

// marks returns one mark for each phase of a unit: done, current and to come.
func (v *runView) marks(u run.UnitState) string {
	if u.Status == flow.Complete {
		return strings.Repeat("■", len(v.flow.Phases))
	}
	at := slices.IndexFunc(v.flow.Phases, func(p flow.Phase) bool {
		return p.Status == u.Status || p.Fixing != "" && p.Fixing == u.Status || u.Pending != "" && p.Name == u.Pending
	})
	mark := "▶"
	switch {
	case u.Status == flow.Failed:
		mark = "✗"
	case u.Status == flow.Queued:
		mark = "○"
	}
	switch {
	case u.Status == flow.AwaitingReview:
		at, mark = len(v.flow.Phases)-1, "?"
	case at < 0:
		at = 0
	}
	return strings.Repeat("■", at) + mark + strings.Repeat("·", len(v.flow.Phases)-at-1)
}

// state describes where a unit and its batches are.
func (v *runView) state(u run.UnitState) string {
	text := v.words(u.Status, u.Pending, u.Since, u.Note)
	if u.Status == flow.Failed && u.Error != "" {
		text += ": " + term.Clean(firstLine(u.Error))
	}
	var parts []string
	for _, b := range u.Batches {
		at := v.words(b.Status, b.Pending, b.Since, b.Note)
		if len(b.Blocked) > 0 {
			at = "after " + strings.Join(b.Blocked, ", ")
		}
		parts = append(parts, term.Clean(b.ID)+" "+at)
	}
	if parts != nil {
		text += " | " + strings.Join(parts, ", ")
	}
	return text
}

func (v *runView) words(status, pending string, since time.Time, note string) string {
	text := strings.ReplaceAll(status, "_", " ")
	switch status {
	case flow.Complete:
		return "complete"
	case flow.NoChange:
		return "no change"
	case flow.Failed:
		return "failed"
	case flow.Queued:
		return "queued for " + pending
	}
	if !since.IsZero() {
		text += " " + term.Span(max(time.Second, v.p.Now().Sub(since)))
	}
	if note != "" {
		text += " (" + term.Clean(note) + ")"
	}
	return text
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
