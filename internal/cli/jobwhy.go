package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/lock"
	"lockkeeper/sched"
)

// itemNamed finds the item that somebody asks why about; nil: they mean something else.
// Whoever holds or waits, and a path that is there, come before what an item is called.
func (p *program) itemNamed(ctx context.Context, a *app.App, q *app.Queue, name string) (*lockkeeper.Item, error) {
	switch {
	case looksLikeGrant(name):
		return nil, nil
	case looksLikeItem(name):
		return q.Find(ctx, name)
	case p.exists(name):
		return nil, nil
	}
	entries, err := a.Locks.Entries(ctx)
	if err != nil || slices.ContainsFunc(entries, func(e lock.Entry) bool { return e.Holder == name }) {
		return nil, err
	}
	return q.Find(ctx, name)
}

// looksLikeItem reports whether a name is spelled like the id of an item.
func looksLikeItem(name string) bool {
	digits, ok := strings.CutPrefix(name, "j")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// whyItem says why an item is where it is.
func (p *program) whyItem(ctx context.Context, a *app.App, q *app.Queue, id string) error {
	e, err := q.Why(ctx, id)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(e)
	}
	workers, err := q.Workers(ctx)
	if err != nil {
		return err
	}
	it := &e.Item
	fmt.Fprintf(p.Out, "%s %s, %s, %s\n", p.painter(p.Out)(bold, title(it)), clean(it.Phase), p.situation(it), p.counts(e))
	switch {
	case it.Failure != nil:
		p.whyFailed(it)
	case it.Status == lockkeeper.ItemCompleted:
		p.detail("took", roughly(it.CompletedAt.Sub(it.DispatchedAt)))
	case it.IsHolding() && it.Stage == lockkeeper.StageRunning:
		p.whyRunning(a, it, workers)
	default:
		p.whyWaiting(e, workers)
	}
	return nil
}

// detail is one reason, or fact, about an item.
func (p *program) detail(what, text string) { fmt.Fprintf(p.Out, " %-5s %s\n", what, text) }

// situation is where an item has got to, and since when.
func (p *program) situation(it *lockkeeper.Item) string {
	since := roughly(p.Now().Sub(sinceOf(it)))
	switch {
	case it.Status == lockkeeper.ItemQueued && it.Escalated:
		return "queued " + since + ", escalated"
	case it.Status == lockkeeper.ItemQueued:
		return "queued " + since
	case it.IsHolding() && it.Stage == lockkeeper.StageRunning:
		return "running " + since
	case it.IsHolding():
		return "under way " + since + ", waits for its next slot"
	case it.Status == lockkeeper.ItemError:
		return "failed " + since + " ago"
	}
	return "completed " + since + " ago"
}

// counts says how often an item was tried, and its id.
func (p *program) counts(e *sched.Explanation) string {
	attempt := e.Item.Attempts
	if e.Item.Status == lockkeeper.ItemQueued {
		attempt++ // the one it waits for
	}
	text := fmt.Sprintf("attempt %d/%d", attempt, e.Attempts)
	if e.Item.Retries > 0 {
		text += fmt.Sprintf(", lock retries %d/%d", e.Item.Retries, e.Retries)
	}
	return text + " (" + e.Item.ID + ")"
}

// whyWaiting lists all that is in an item's way, and when it may start.
func (p *program) whyWaiting(e *sched.Explanation, workers []lockkeeper.Worker) {
	for _, first := range e.After {
		text := fmt.Sprintf("%s (%s) %s, %s", title(&first), first.ID, clean(first.Phase), stateOf(&first))
		if first.Failure != nil {
			text += ": " + noteOf(&first)
		}
		p.detail("after", text)
	}
	for _, l := range e.Locks {
		p.detail("lock", p.lockWait(l))
	}
	for _, s := range e.Slots {
		p.detail("slot", fmt.Sprintf("%s %d/%d", clean(s.Pool), s.Taken, s.Limit))
	}
	if e.Behind != "" {
		p.detail("copy", "behind on "+clean(e.Behind))
	}
	starts := "starts"
	if !e.StartsAt.IsZero() {
		starts += " ≈" + p.clock(e.StartsAt)
	}
	p.detail("then", fmt.Sprintf("%s (%s in line)", starts, ordinal(e.Position)))
	reached := slices.ContainsFunc(workers, func(w lockkeeper.Worker) bool { return w.Reaches(e.Item.Root) })
	switch {
	case e.Item.IsHolding():
	case len(workers) == 0:
		p.advise(startWorker)
	case !reached:
		p.advise(fmt.Sprintf("lockkeeper job work --root %s, for no worker reaches that root", clean(e.Item.Root)))
	}
}

// lockWait is who holds a lock in an item's way, what they do, and for how long still.
func (p *program) lockWait(l sched.LockWait) string {
	who := clean(l.Holder)
	if l.By != nil {
		who = title(l.By) + " " + clean(l.By.Phase)
		if l.By.Note != "" {
			who = title(l.By) + " " + clean(l.By.Note)
		}
	}
	if l.Kind == lockkeeper.Waiting {
		who += ", which waits for it earlier"
	} else if l.By == nil {
		who += ", for " + roughly(p.Now().Sub(l.AcquiredAt))
	}
	if l.Left > 0 {
		who += ", ≈" + roughly(l.Left) + " left"
	}
	return clean(l.BlockingPath) + " ← " + who
}

func (p *program) whyRunning(a *app.App, it *lockkeeper.Item, workers []lockkeeper.Worker) {
	where := "worker " + clean(it.Worker) + ", of which nothing has been heard lately"
	if i := slices.IndexFunc(workers, func(w lockkeeper.Worker) bool { return w.ID == it.Worker }); i >= 0 {
		w := workers[i]
		where = clean(w.Node) + ", worker " + clean(w.ID)
		if w.Process != nil {
			where += fmt.Sprintf(", process %d is %s", w.Process.PID, a.Host.Life(*w.Process))
		}
	}
	p.detail("on", where)
	if it.Note != "" {
		p.detail("note", clean(it.Note))
	}
	p.detail("grant", it.GrantID)
	p.detail("runs", clean(typed(it.Command)))
}

func (p *program) whyFailed(it *lockkeeper.Item) {
	reason, next, found := cutLast(it.Failure.Reason, nextSep)
	if !found {
		next = "lockkeeper job retry " + it.ID
	}
	p.detail("why", clean(reason))
	for _, c := range it.Failure.Conflicts {
		p.detail("lock", p.lockWait(sched.LockWait{ConflictInfo: c}))
	}
	if it.Failure.Waited > 0 {
		p.detail("after", fmt.Sprintf("%s blocked, %d lock %s", roughly(it.Failure.Waited), it.Failure.Attempts, plural(it.Failure.Attempts, "retry", "retries")))
	}
	p.advise(next)
}

// roughly says a length of time as people say it of work.
func roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// clock is a point in time of today, or soon, as a clock shows it.
func (p *program) clock(t time.Time) string {
	now := p.Now()
	t = t.In(now.Location())
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("Jan 2 15:04")
}

// ordinal is a place in a line.
func ordinal(n int) string {
	switch {
	case n%10 == 1 && n%100 != 11:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2 && n%100 != 12:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3 && n%100 != 13:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}
