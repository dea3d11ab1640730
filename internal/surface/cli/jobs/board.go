package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// A board shows the progress of a worker. It prints a line, or with --json an object, when an item starts or
// ends here or fails elsewhere, and when the worker waits. A terminal also shows a live summary below these
// lines.
type board struct {
	p    *program
	a    *project.Project
	q    *job.Queue
	live bool // shows a live summary
	poke chan struct{}
	quit chan struct{}
	loop sync.WaitGroup

	seen uint64 // the last event that was read; used by the loop, and after it by end

	mu      sync.Mutex
	began   time.Time
	running map[string]start // by item
	queued  int
	done    int
	failed  map[string]*lockkeeper.Item // by id
	waits   string                      // the last line about waiting
}

func newBoard(p *program, a *project.Project, q *job.Queue) *board {
	return &board{p: p, a: a, q: q, live: !p.JSON && p.HandlesEscapes(p.Out), poke: make(chan struct{}, 1), quit: make(chan struct{}),
		began: p.Now(), running: map[string]start{}, failed: map[string]*lockkeeper.Item{}}
}

// A start is the beginning of an attempt on this worker.
type start struct {
	at         time.Time
	dispatched time.Time // time of the dispatch by the store's clock
}

// event is one line of the board with --json.
type event struct {
	Event   string   `json:"event"`
	At      string   `json:"at"`
	Item    string   `json:"item,omitempty"`
	Name    string   `json:"name,omitempty"`
	Phase   string   `json:"phase,omitempty"`
	Attempt int      `json:"attempt,omitempty"`
	Grant   string   `json:"grant_id,omitempty"`
	Seconds float64  `json:"seconds,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Running []string `json:"running,omitempty"`
	*outcome
}

// prepare records the last event before the worker starts.
func (b *board) prepare(ctx context.Context) error {
	page, err := b.a.Locks.Events(ctx, store.EventQuery{Limit: 1, Latest: true})
	if err == nil && len(page) > 0 {
		b.seen = page[0].Seq
	}
	return err
}

// begin updates the board until end.
func (b *board) begin(ctx context.Context) {
	b.loop.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			b.update(ctx)
			select {
			case <-b.poke:
			case <-tick.C:
			case <-b.quit:
				return
			}
		}
	})
}

// update shows changes on other workers, and the item that this worker waits for. The worker itself reports
// errors of the store.
func (b *board) update(ctx context.Context) {
	changed, err := b.changedElsewhere(ctx)
	if err != nil {
		changed = nil // nil: the changes are read again next time
	}
	census, err := b.q.Census(ctx)
	waits := []*sched.Explanation{}
	if err == nil && census.Ready == 0 && census.Waiting > 0 && b.isIdle() {
		waits, err = b.q.Blocked(ctx, 1)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range changed {
		b.tell(it)
	}
	switch {
	case err != nil:
	case len(waits) == 1 && len(b.running) == 0:
		b.queued = census.Queued()
		b.wait(&waits[0].Item, WaitOf(b.p.Program, waits[0]))
	default:
		b.queued, b.waits = census.Queued(), ""
	}
	if b.live {
		fmt.Fprint(b.p.Out, term.ClearLine+term.Ellipsis(b.summary(), max(20, term.Width(b.p.Out)-1)))
	}
}

// isIdle reports whether no item runs here.
func (b *board) isIdle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.running) == 0
}

// changedElsewhere returns the items that failed or were requeued since the last call, each as
// it was then. Items that run here report their own end.
func (b *board) changedElsewhere(ctx context.Context) (changed []*lockkeeper.Item, err error) {
	var events []lockkeeper.Event
	seen := b.seen
	for ev, err := range view.Events(ctx, b.a, store.EventQuery{After: seen}) {
		if err != nil {
			return nil, err
		}
		seen = ev.Seq
		if ev.Kind == lockkeeper.EventFailed || ev.Kind == lockkeeper.EventRequeued {
			events = append(events, ev)
		}
	}
	for _, ev := range events {
		now, err := b.q.Items(ctx, []string{sched.ItemID(ev)})
		if err != nil {
			return nil, err
		}
		for _, it := range now {
			if it.DispatchedAt.After(ev.At) { // the item belongs to a later attempt
				it = it.Clone()
				it.DispatchedAt = time.Time{}
			}
			if then, ok := b.q.ItemAfter(*it, ev); ok {
				changed = append(changed, &then)
			}
		}
	}
	b.seen = seen
	return changed, nil
}

// wait shows why the first item that could start here waits. The caller holds the mutex.
func (b *board) wait(it *lockkeeper.Item, what string) {
	line := fmt.Sprintf("%s (%s) for %s", it.ID, Title(it), what)
	if b.waits == line {
		return
	}
	b.waits = line
	if !b.live { // the live summary shows the end
		ev := about("waiting", it)
		ev.Reason = what
		b.print(ev, "waiting: "+line)
	}
}

func (b *board) summary() string {
	line := fmt.Sprintf("%d running, %d queued, %d done, %d failed, %s", len(b.running), b.queued, b.done, len(b.failed), term.Span(b.p.Now().Sub(b.began)))
	if b.waits != "" {
		line += "; waiting: " + b.waits
	}
	return line
}

// say prints a line, and updates the live summary. The caller holds the mutex.
func (b *board) say(ev event, line string) {
	b.print(ev, line)
	if !b.live {
		return
	}
	select {
	case b.poke <- struct{}{}:
	default:
	}
}

func (b *board) print(ev event, line string) {
	ev.At = b.p.Now().UTC().Format(time.RFC3339)
	switch {
	case b.p.JSON:
		b.p.PrintLine(ev) // the output remembers a failed write
	case b.live:
		fmt.Fprint(b.p.Out, term.ClearLine+line+"\n")
	default:
		fmt.Fprintln(b.p.Out, line)
	}
}

func about(kind string, it *lockkeeper.Item) event {
	return event{Event: kind, Item: it.ID, Name: it.Workflow, Phase: it.Phase, Attempt: it.Attempts, Grant: it.GrantID}
}

func (b *board) started(it *lockkeeper.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[it.ID] = start{at: b.p.Now(), dispatched: it.DispatchedAt}
	b.say(about("started", it), fmt.Sprintf("started %s (%s) %s, attempt %d", it.ID, Title(it), term.Clean(it.Phase), it.Attempts))
}

// ended shows how an attempt on this worker ended.
func (b *board) ended(it lockkeeper.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	began, ran := b.running[it.ID]
	delete(b.running, it.ID)
	if it.Status == lockkeeper.ItemError {
		b.tell(&it)
		return
	}
	delete(b.failed, it.ID)
	if !ran { // the item never started: this copy is behind
		return
	}
	took := b.p.Now().Sub(began.at)
	kind, line := "completed", fmt.Sprintf("done %s (%s), %s", it.ID, Title(&it), term.Span(took))
	switch it.Status {
	case lockkeeper.ItemCompleted:
		b.done++
	case lockkeeper.ItemQueued:
		kind, line = "interrupted", fmt.Sprintf("interrupted %s (%s), %s: it is queued again", it.ID, Title(&it), term.Span(took))
	default:
		kind, line = "interrupted", fmt.Sprintf("interrupted %s (%s), %s: the store still lists it as running on %s", it.ID, Title(&it), term.Span(took), term.Clean(it.Worker))
	}
	ev := about(kind, &it)
	ev.Seconds = took.Seconds()
	b.say(ev, line)
}

// tell shows that an item failed on any worker, once for each failure, and forgets the failure
// when the item is queued again. The caller holds the mutex.
func (b *board) tell(it *lockkeeper.Item) {
	if it.Status == lockkeeper.ItemQueued {
		delete(b.failed, it.ID)
		return
	}
	here, runs := b.running[it.ID]
	runs = runs && !it.CompletedAt.Before(here.dispatched) // this worker reports the end of the item
	if told := b.failed[it.ID]; runs || it.Status != lockkeeper.ItemError || told != nil && told.CompletedAt.Equal(it.CompletedAt) {
		return
	}
	b.failed[it.ID] = it
	kind, line := "failed", fmt.Sprintf("failed %s (%s)", it.ID, Title(it))
	took := view.ItemTook(it)
	if took > 0 {
		line += ", " + term.Span(took)
	}
	reason, _, _ := command.CutNext(it.Failure.Reason)
	line += ": " + term.Clean(reason)
	if by, canceled := it.Failure.CanceledBy(); canceled {
		kind, line = "cancelled", fmt.Sprintf("canceled %s (%s), by %s", it.ID, Title(it), term.Clean(by))
	}
	ev := about(kind, it)
	ev.Reason, ev.Seconds = it.Failure.Reason, took.Seconds()
	b.say(ev, line)
}

// trouble shows an error that does not end the worker.
func (b *board) trouble(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.p.JSON {
		b.say(event{Event: "trouble", Reason: err.Error()}, "")
		return
	}
	if b.live {
		fmt.Fprint(b.p.Out, term.ClearLine)
	}
	b.p.Say(err.Error())
}

// changed shows that another program changed a file of an item that runs.
func (b *board) changed(c session.HeldChange) {
	if c.Doubt == "" && c.Item != "" {
		b.trouble(errors.New(c.String()))
	}
}

// stopping shows that the worker stops, and which items it waits for.
func (b *board) stopping(still []lockkeeper.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for _, it := range still {
		ids = append(ids, it.ID)
	}
	line := "stopping: no command is running"
	if len(still) > 0 {
		line = "stopping: waiting for " + term.Join(still, func(it lockkeeper.Item) string { return it.ID + " (" + Title(&it) + ")" }) + "; press Ctrl-C again to stop them"
	}
	b.say(event{Event: "stopping", Running: ids}, line)
}

// closing shows that a second signal stops the running commands.
func (b *board) closing() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.say(event{Event: "closing"}, "stopping the running commands")
}
