package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/app"
)

// board shows what a worker does: to a person one line that is kept current, and what
// fails; to a program a line, or with --json an object, for each item that starts or
// ends.
type board struct {
	p    *program
	q    *app.Queue
	live bool // one line is kept current
	poke chan struct{}
	quit chan struct{}
	loop sync.WaitGroup

	mu      sync.Mutex
	began   time.Time
	running map[string]time.Time // since when
	queued  int
	done    int
	failed  []string // ids, of which the last attempt here failed
}

func newBoard(p *program, q *app.Queue) *board {
	return &board{p: p, q: q, live: !p.json && isTerminal(p.Out), poke: make(chan struct{}, 1), quit: make(chan struct{}),
		began: p.Now(), running: map[string]time.Time{}}
}

// event is one line for a program.
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
	Done    int      `json:"done,omitempty"`
	Failed  int      `json:"failed,omitempty"`
	Queued  int      `json:"queued,omitempty"`
}

// begin keeps the line current until end.
func (b *board) begin(ctx context.Context) {
	if !b.live {
		return
	}
	b.loop.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			n, err := b.q.Depth(ctx)
			b.mu.Lock()
			if err == nil { // the worker tells of trouble with the store
				b.queued = n
			}
			fmt.Fprint(b.p.Out, again+shorten(b.summary(), max(20, width(b.p.Out)-1)))
			b.mu.Unlock()
			select {
			case <-b.poke:
			case <-tick.C:
			case <-b.quit:
				return
			}
		}
	})
}

// summary is the line; the caller has the mutex.
func (b *board) summary() string {
	return fmt.Sprintf("%d running, %d queued, %d done, %d failed, %s", len(b.running), b.queued, b.done, len(b.failed), span(b.p.Now().Sub(b.began)))
}

// say shows a line that stays; the caller has the mutex.
func (b *board) say(ev event, line string) {
	ev.At = stamp(b.p.Now())
	switch {
	case b.p.json:
		enc := json.NewEncoder(b.p.Out)
		enc.SetEscapeHTML(false)
		enc.Encode(ev) // the output remembers what could not be written
	case line != "" && b.live:
		fmt.Fprint(b.p.Out, again+line+"\n")
	case line != "":
		fmt.Fprintln(b.p.Out, line)
	}
	select {
	case b.poke <- struct{}{}:
	default:
	}
}

func about(kind string, it *lockkeeper.Item) event {
	return event{Event: kind, Item: it.ID, Name: it.Workflow, Phase: it.Phase, Attempt: it.Attempts, Grant: it.GrantID}
}

func (b *board) started(it *lockkeeper.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[it.ID] = b.p.Now()
	line := ""
	if !b.live {
		line = fmt.Sprintf("started %s (%s) %s, attempt %d", it.ID, title(it), clean(it.Phase), it.Attempts)
	}
	b.say(about("started", it), line)
}

// ended tells how the command of an item ended. One that was halted, because its grant
// was lost or the worker closed, has not failed: it goes back to the queue.
func (b *board) ended(it *lockkeeper.Item, failure, halted error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	took := b.p.Now().Sub(b.running[it.ID])
	delete(b.running, it.ID)
	b.failed = slices.DeleteFunc(b.failed, func(id string) bool { return id == it.ID })
	kind, line := "completed", fmt.Sprintf("done %s (%s), %s", it.ID, title(it), span(took))
	switch {
	case halted != nil:
		failure = halted
		kind, line = "interrupted", fmt.Sprintf("interrupted %s (%s), %s: %s; it goes back to the queue", it.ID, title(it), span(took), clean(halted.Error()))
	case failure != nil:
		b.failed = append(b.failed, it.ID)
		kind, line = "failed", fmt.Sprintf("failed %s (%s), %s: %s", it.ID, title(it), span(took), clean(failure.Error()))
	default:
		b.done++
		if b.live {
			line = ""
		}
	}
	ev := about(kind, it)
	ev.Seconds = took.Seconds()
	if failure != nil {
		ev.Reason = failure.Error()
	}
	b.say(ev, line)
}

// trouble tells of an error that the worker survives.
func (b *board) trouble(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.say(event{Event: "trouble", Reason: err.Error()}, "")
	if !b.p.json {
		if b.live {
			fmt.Fprint(b.p.Out, again)
		}
		b.p.say(err.Error())
	}
}

// stopping tells that the worker was asked to stop, and what it waits for.
func (b *board) stopping(still []lockkeeper.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids, names []string
	for _, it := range still {
		ids, names = append(ids, it.ID), append(names, fmt.Sprintf("%s (%s)", it.ID, title(&it)))
	}
	line := "stopping: nothing runs"
	if names != nil {
		line = "stopping: waiting for " + strings.Join(names, ", ") + "; once more ends what runs"
	}
	b.say(event{Event: "stopping", Running: ids}, line)
}

// closing tells that the worker was asked once more.
func (b *board) closing() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.say(event{Event: "closing"}, "ending what runs")
}

// end shows the last line; so many items stay queued.
func (b *board) end(stay int) {
	close(b.quit)
	b.loop.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queued = stay
	b.say(event{Event: "ended", Done: b.done, Failed: len(b.failed), Queued: stay}, b.summary())
}

// verdict is how a worker ends that was to work until nothing is left.
func (b *board) verdict() error {
	if len(b.failed) == 0 {
		return nil
	}
	if b.p.json {
		return &codedError{exit: exitFailed}
	}
	what := fmt.Sprintf("%s failed: %s", counted(len(b.failed), "item"), strings.Join(b.failed, ", "))
	return &codedError{exit: exitFailed, err: errors.New(what + nextSep + "lockkeeper why " + b.failed[0])}
}
