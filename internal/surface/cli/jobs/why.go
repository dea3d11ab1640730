package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/lock"
	"lockkeeper/sched"
)

// ItemNamed returns the item that a name given to why means, or nil if it means
// something else. A holder and an existing path take precedence over an item's name.
func ItemNamed(ctx context.Context, p *command.Program, a *project.Project, q *job.Queue, name string) (*lockkeeper.Item, error) {
	if view.LooksLikeGrant(name) {
		return nil, nil
	}
	isID := sched.IsItemID(name)
	if isID {
		if it, err := q.Find(ctx, name); err != nil || it != nil {
			return it, err
		}
	}
	if p.Exists(name) {
		return nil, nil
	}
	entries, err := a.Locks.Requests(ctx)
	switch {
	case err != nil || slices.ContainsFunc(entries, func(e lock.RequestInfo) bool { return e.Holder == name }):
		return nil, err
	case isID:
		return item(ctx, q, name)
	}
	return q.Find(ctx, name)
}

func (p *program) whyItem(ctx context.Context, a *project.Project, q *job.Queue, id string) error {
	v, err := view.New(a).Item(ctx, id)
	if err != nil {
		return err
	}
	e, it := &v.Why, &v.Why.Item
	if p.JSON {
		return p.PrintJSON(e)
	}
	fmt.Fprintf(p.Out, "%s %s, %s, %s\n", p.Painter(p.Out)(term.Bold, fullTitle(it)), term.Clean(it.Phase), p.situation(it), counts(e))
	switch {
	case it.Status == lockkeeper.ItemError:
		p.whyFailed(it)
	case it.Status == lockkeeper.ItemCompleted:
		p.detail("took", term.Span(view.ItemTook(it)))
		p.itemFacts(it)
	case it.IsHolding() && it.Stage == lockkeeper.StageRunning, it.Aside() != "":
		return p.whyRunning(ctx, q, v)
	default:
		return p.whyWaiting(ctx, q, v)
	}
	return nil
}

// itemFacts prints the command, locks and output of an item.
func (p *program) itemFacts(it *lockkeeper.Item) {
	node, _, _ := strings.Cut(it.Worker, "/")
	if it.Status != lockkeeper.ItemDispatched && node != "" {
		p.detail("on", term.Clean(node))
	}
	if len(it.Command) > 0 {
		p.detail("runs", term.Clean(shellword.Join(it.Command)))
	}
	if len(it.Locks) > 0 {
		p.detail("locks", LockList(it.Locks))
	}
	if it.Attempts > 0 {
		p.detail("output", "lockkeeper job output "+it.ID)
	}
}

// LockList returns locks in one line, up to locks.PathsShown.
func LockList(asked []lockkeeper.Lock) string {
	return term.JoinFew(asked, locks.PathsShown, func(l lockkeeper.Lock) string { return l.Mode.String() + " " + term.Clean(l.Path) })
}

func (p *program) detail(what, text string) { fmt.Fprintf(p.Out, " %-5s %s\n", what, text) }

// situation describes the status of an item, and since when.
func (p *program) situation(it *lockkeeper.Item) string {
	since := roughly(p.Now().Sub(it.StatusSince()))
	switch {
	case it.Status == lockkeeper.ItemQueued && it.Escalated:
		return "queued " + since + ", escalated"
	case it.Status == lockkeeper.ItemQueued:
		return "queued " + since
	case it.IsHolding() && it.Stage == lockkeeper.StageRunning:
		return "running " + since
	case it.Aside() != "":
		return "running " + since + ", " + it.Aside()
	case it.IsHolding():
		return "running " + since + ", waits for its next slot"
	case it.Status == lockkeeper.ItemError:
		return StateOf(it) + " " + since + " ago"
	}
	return "completed " + since + " ago"
}

// counts returns the attempts of an item, and its id.
func counts(e *sched.Explanation) string {
	text := "not started yet"
	if attempt := e.Item.Attempts; attempt > 0 {
		if e.Item.Status == lockkeeper.ItemQueued {
			attempt++ // the attempt that the item waits for
		}
		text = fmt.Sprintf("attempt %d/%d", attempt, max(attempt, e.Attempts))
	} else if e.Item.Status == lockkeeper.ItemError {
		text = "never started"
	}
	if e.Item.Retries > 0 {
		text += fmt.Sprintf(", lock retries %d/%d", min(e.Item.Retries, e.Retries), e.Retries)
	}
	return text + " (" + e.Item.ID + ")"
}

// whyWaiting prints everything that blocks an item, and when it may start.
func (p *program) whyWaiting(ctx context.Context, q *job.Queue, v *view.Item) error {
	e, failed := &v.Why, v.Failed
	workers, err := q.Workers(ctx)
	if err != nil {
		return err
	}
	for _, first := range e.After {
		p.detail("after", waitsAfter(&first))
	}
	for _, l := range e.Locks {
		p.detail("lock", p.lockWait(l))
	}
	for _, s := range e.Slots {
		p.detail("slot", fmt.Sprintf("%s %d/%d", term.Clean(s.Pool), s.Taken, s.Limit))
	}
	if e.Behind != "" {
		p.detail("copy", "behind on "+term.Clean(e.Behind))
	}
	starts := "starts"
	switch {
	case failed != nil:
		starts = fmt.Sprintf("never, because %s failed", failed.Item)
	case e.StartsAt.IsZero():
		starts += fmt.Sprintf(" (%s in the queue)", ordinal(e.Position))
	default:
		starts += fmt.Sprintf(" ≈%s (%s in the queue)", p.Clock(e.StartsAt), ordinal(e.Position))
	}
	p.detail("then", starts)
	p.itemFacts(&e.Item)
	reached := slices.ContainsFunc(workers, func(w lockkeeper.Worker) bool { return w.Reaches(e.Item.Root) })
	switch {
	case e.Item.IsHolding():
	case failed != nil:
		p.Advise(retryOrCancel(failed.Item, e.Item.ID))
	case len(workers) == 0:
		p.Advise(workerFor(&e.Item))
	case !reached:
		p.Advise(fmt.Sprintf("lockkeeper job work --root %s, because no worker reaches that root", term.Clean(e.Item.Root)))
	}
	return nil
}

// retryOrCancel returns the next step for an item that waits for a failed one.
func retryOrCancel(failed, waits string) string {
	return fmt.Sprintf("lockkeeper job retry %s, or lockkeeper job cancel %s", failed, waits)
}

func waitsAfter(first *lockkeeper.Item) string {
	text := fmt.Sprintf("%s (%s) %s, %s", Title(first), first.ID, term.Clean(first.Phase), StateOf(first))
	if first.Failure != nil {
		text += ": " + noteOf(first)
	}
	return text
}

// lockWait describes who holds a blocking lock, what it does, and for how long.
func (p *program) lockWait(l sched.LockWait) string {
	who := term.Clean(l.Holder)
	if l.By != nil {
		who = Title(l.By) + " " + term.Clean(l.By.Phase)
		if l.By.Note != "" {
			who = Title(l.By) + " " + term.Clean(l.By.Note)
		}
	}
	if l.Kind == lockkeeper.Waiting {
		who += ", which waits for it earlier"
	} else if l.By == nil {
		who += ", for " + roughly(p.Now().Sub(l.AcquiredAt))
	}
	switch {
	case l.Overdue:
		who += ", longer than usual"
	case l.Left > 0:
		who += ", ≈" + roughly(l.Left) + " left"
	}
	return term.Clean(l.BlockingPath) + " ← " + who
}

// WaitOf returns what an item waits for first, in a few words.
func WaitOf(p *command.Program, e *sched.Explanation) string {
	switch {
	case len(e.After) > 0:
		return waitsAfter(&e.After[0])
	case len(e.Locks) > 0:
		l := e.Locks[0]
		who := term.Clean(l.Holder)
		if l.By != nil {
			who = fmt.Sprintf("%s (%s)", l.By.ID, Title(l.By))
		}
		if l.Kind == lockkeeper.Waiting {
			return fmt.Sprintf("%s, which %s requested earlier", term.Clean(l.BlockingPath), who)
		}
		return fmt.Sprintf("%s, held by %s since %s", term.Clean(l.BlockingPath), who, p.Clock(l.AcquiredAt))
	case len(e.Slots) > 0:
		return fmt.Sprintf("%s, %d/%d in use", term.Clean(view.SlotOf(e.Slots[0].Pool)), e.Slots[0].Taken, e.Slots[0].Limit)
	case e.Behind != "":
		return "a copy that is up to date; it is behind on " + term.Clean(e.Behind)
	}
	return "its turn"
}

func (p *program) whyRunning(ctx context.Context, q *job.Queue, v *view.Item) error {
	it, w := &v.Why.Item, v.Worker
	where := "worker " + term.Clean(it.Worker)
	if w == nil {
		where += ", which is gone"
	} else if w.Process != nil {
		where += fmt.Sprintf(", process %d is %s", w.Process.PID, w.Liveness)
	}
	p.detail("on", where)
	if it.Note != "" {
		p.detail("note", term.Clean(it.Note))
	}
	if it.Failure != nil {
		p.detail("but", term.Clean(lockkeeper.LocalTimes(it.Failure.Reason)))
	}
	p.detail("grant", it.GrantID)
	p.itemFacts(it)
	if w != nil {
		return nil
	}
	p.detail("then", p.goesBack(v))
	others, err := q.Workers(ctx)
	if err == nil && len(others) == 0 {
		p.Advise(workerFor(it))
	}
	return err
}

// goesBack describes when an item whose worker is gone returns to the queue.
func (p *program) goesBack(v *view.Item) string {
	when := "when the next worker starts"
	if g := v.Grant; g != nil && g.ExpiresAt != nil && g.ExpiresAt.After(p.Now()) {
		when += ", at the latest when its lease expires " + term.Until(g.ExpiresAt, p.Now())
	}
	return "returns to the queue by itself " + when
}

func (p *program) whyFailed(it *lockkeeper.Item) {
	reason, next, found := command.CutNext(it.Failure.Reason)
	if !found {
		next = "lockkeeper job retry " + it.ID
	}
	reason, _, _ = command.CutLast(reason, job.OutputSep) // itemFacts prints this part
	p.detail("why", term.Clean(reason))
	told := map[string]bool{}
	for _, c := range it.Failure.Conflicts {
		if line := p.lockWait(sched.LockWait{ConflictInfo: c}); !told[line] {
			told[line] = true
			p.detail("lock", line)
		}
	}
	if it.Failure.Waited > 0 {
		p.detail("after", fmt.Sprintf("%s blocked, %d lock %s", roughly(it.Failure.Waited), it.Failure.Attempts, term.Plural(it.Failure.Attempts, "retry", "retries")))
	}
	if took := view.ItemTook(it); took > 0 {
		p.detail("took", term.Span(took))
	}
	p.itemFacts(it)
	p.Advise(next)
}

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
