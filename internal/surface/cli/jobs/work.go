package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/sched"
)

type workOptions struct {
	slots      int
	untilEmpty bool
	roots      []string
}

// MostSlots is more commands than one machine can run at once.
const MostSlots = 1_000

func (p *program) workCommand() *cobra.Command {
	var o workOptions
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Run queued commands",
		Long: `Run queued commands, up to --slots at once, each under its locks. Their output is kept:
see lockkeeper job output. A command finds its item in LOCKKEEPER_ITEM and its grant in
LOCKKEEPER_GRANT. If it has a slot of the pool test, it also has LOCKKEEPER_SLOT: a
number from 1 to max_test_concurrency that no other running command has, on any worker.

Ctrl-C starts no new commands and lets running ones finish. Press it again, a second
or more later, to stop them; they return to the queue. When the worker dies, its
commands and everything they started end at once, and the next worker starts the
commands again. Any number of workers may share a queue.

The exit code is 0. With --until-empty it is 1 if items failed since it started, or are
still queued because an item before them failed.`,
		Example: `  lockkeeper job work --slots 4
  lockkeeper job work --slots 4 --until-empty
  lockkeeper job work --root main --root site-2`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.slots < 1 || o.slots > MostSlots {
				return &lockkeeper.InputError{Field: "slots", Value: fmt.Sprint(o.slots), Reason: fmt.Sprintf("out of range, must be 1 to %d", MostSlots), Next: "give the number of commands to run at once"}
			}
			s := p.Settings()
			s.Roots = o.roots
			return p.WithQueue(cmd.Context(), s, func(a *project.Project, q *job.Queue) error { return p.work(cmd.Context(), a, q, o) })
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.slots, "slots", 1, "how many commands run at once")
	f.BoolVar(&o.untilEmpty, "until-empty", false, "end when no item is queued or running")
	f.StringArrayVar(&o.roots, "root", nil, "the `name` of a root that this node reaches; repeatable (default: roots of lockkeeper.yaml)")
	return cmd
}

func (p *program) work(ctx context.Context, a *project.Project, q *job.Queue, o workOptions) (err error) {
	if err := a.Config.CheckReach(); err != nil {
		return err
	}
	self, err := process.Self()
	if err != nil {
		return err
	}
	b := newBoard(p, a, q)
	if err := b.prepare(ctx); err != nil {
		return err
	}
	runner, err := job.NewRunner(a, p.Env, b.trouble)
	if err != nil {
		return err
	}
	defer runner.Close()
	came, forget := command.StopSignals()
	defer forget()
	w, err := q.Start(ctx, sched.WorkerOptions{
		Slots: o.slots, Node: self.Host, Process: &self, Roots: a.Config.Roots, UntilEmpty: o.untilEmpty, OnError: b.trouble,
		CheckFresh: func(ctx context.Context, it *lockkeeper.Item) error { return a.CheckCopy(ctx, it.Locks) },
		Run: func(ctx context.Context, job *sched.Job) error {
			b.started(&job.Item)
			return runner.Run(ctx, job)
		},
		OnEnd: b.ended,
	})
	if err != nil {
		return err
	}
	b.begin(ctx)
	err = session.Open(a).Watched(ctx, session.Watcher{Failed: b.trouble, Changed: b.changed}, func(context.Context) error { return p.supervise(w, came, b) })
	if ending := b.end(ctx, o.untilEmpty); err == nil {
		err = ending
	}
	return err
}

// OneAsk is the time in which several signals count as one: a shell and a terminal may both
// pass on one key press.
const OneAsk = time.Second

// supervise returns when a worker has ended. The first signal stops new commands, a later one
// stops running commands.
func (p *program) supervise(w *sched.Worker, came <-chan os.Signal, b *board) error {
	over := make(chan error, 1)
	go func() { over <- w.Wait() }()
	var asked time.Time
	for {
		select {
		case err := <-over:
			return err
		case <-came:
		}
		if !asked.IsZero() {
			if p.Now().Sub(asked) < OneAsk {
				continue
			}
			b.closing()
			return w.Close()
		}
		asked = p.Now()
		now, cancel := context.WithCancel(context.Background())
		cancel() // the context has ended, so Stop does not wait
		still, err := w.Stop(now)
		if err == nil {
			return <-over
		}
		b.stopping(still)
	}
}

type outcome struct {
	Done   int      `json:"done"`
	Failed int      `json:"failed"` // number of failures since the worker started, on any worker
	Queued int      `json:"queued"`
	Left   []string `json:"queued_items"` // ids of the queued items; only with --until-empty
	Lost   []string `json:"failed_items"` // ids of the failed items

	left, lost []*lockkeeper.Item
}

const namedAtEnd = 10

// end shows the result, and returns the exit code of the worker.
func (b *board) end(ctx context.Context, untilEmpty bool) error {
	close(b.quit)
	b.loop.Wait()
	b.live = false
	if b.p.HandlesEscapes(b.p.Out) && !b.p.JSON {
		fmt.Fprint(b.p.Out, term.ClearLine)
	}
	out, err := b.reckon(ctx, untilEmpty)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.queued, b.waits = out.Queued, ""
	b.say(event{Event: "ended", outcome: out}, b.summary())
	b.mu.Unlock()
	if !untilEmpty || out.Failed+out.Queued == 0 {
		return nil
	}
	if b.p.JSON {
		return &command.ExitError{Code: command.ExitFailed}
	}
	return &command.ExitError{Code: command.ExitFailed, Err: b.unfinished(ctx, out)}
}

// reckon counts completed, failed and queued items.
func (b *board) reckon(ctx context.Context, untilEmpty bool) (*outcome, error) {
	elsewhere, err := b.changedElsewhere(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range elsewhere {
		b.tell(it)
	}
	now, err := b.q.Items(ctx, slices.Collect(maps.Keys(b.failed)))
	if err != nil {
		return nil, err
	}
	out := &outcome{Done: b.done, Left: []string{}, Lost: []string{}}
	clear(b.failed)
	for _, it := range now {
		if it.Status == lockkeeper.ItemError && !it.IsCanceled() { // the item was not retried since
			b.failed[it.ID] = it
			out.lost = append(out.lost, it)
		}
	}
	slices.SortFunc(out.lost, func(a, b *lockkeeper.Item) int { return int(int64(a.Seq) - int64(b.Seq)) })
	out.Failed = len(out.lost)
	if out.Queued, err = b.q.Depth(ctx); err != nil {
		return nil, err
	}
	if untilEmpty && out.Queued > 0 {
		out.left, err = b.q.Oldest(ctx, lockkeeper.ItemQueued, out.Queued)
	}
	for _, it := range out.lost {
		out.Lost = append(out.Lost, it.ID)
	}
	for _, it := range out.left {
		out.Left = append(out.Left, it.ID)
	}
	return out, err
}

// unfinished returns the error of --until-empty if items failed or are still queued.
func (b *board) unfinished(ctx context.Context, out *outcome) error {
	var parts []string
	next := ""
	if out.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%s failed: %s", term.Counted(out.Failed, "item"), namesOf(out.lost)))
		next = "lockkeeper why " + out.Lost[0]
	}
	if out.Queued > 0 {
		parts = append(parts, fmt.Sprintf("%s %s still queued: %s", term.Counted(out.Queued, "item"), term.Plural(out.Queued, "is", "are"), namesOf(out.left)))
	}
	if next == "" && len(out.left) > 0 {
		next = "lockkeeper why " + out.Left[0]
		failed, err := b.q.FailedBefore(ctx, out.left[0])
		if err != nil {
			return err
		}
		if failed != nil {
			next = retryOrCancel(failed.ID, out.Left[0])
		}
	}
	return lockkeeper.WithNext(errors.New(strings.Join(parts, "; ")), next)
}

func namesOf(items []*lockkeeper.Item) string {
	return term.JoinFew(items, namedAtEnd, func(it *lockkeeper.Item) string { return it.ID + " (" + Title(it) + ")" })
}
