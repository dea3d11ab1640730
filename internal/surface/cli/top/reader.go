package top

import (
	"context"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/internal/surface/view"
)

// Views are the sources of the pages. A *view.Reader implements it.
type Views interface {
	Now(ctx context.Context, since uint64) (*view.Now, error)
	Decisions(ctx context.Context, flow string) (*view.Decisions, error)
	Decision(ctx context.Context, flow string, ref progress.Ref) (*view.Decision, error)
	Board(ctx context.Context, flow string) (*view.Board, error)
	Items(ctx context.Context, q view.ItemsQuery) (*view.Items, error)
	Item(ctx context.Context, name string) (*view.Item, error)
	ItemLog(ctx context.Context, name string, from int64) (*view.Log, error)
	Locks(ctx context.Context) (*view.Locks, error)
	Status(ctx context.Context) (*view.Status, error)
	Rescue(ctx context.Context) (*view.Rescue, error)
	Rescued(ctx context.Context, id string) (*view.RescueDetail, error)
}

// wants is what the screen shows, so that nothing else is read.
type wants struct {
	page page
	ref  progress.Ref // the open decision
	item string       // the item whose log is open
	from int64        // the offset of the log from which to read
	kept string       // the open kept change
}

// facts is one reading. What was not wanted is nil.
type facts struct {
	of        wants
	now       *view.Now
	decisions *view.Decisions
	decision  *view.Decision
	board     *view.Board
	items     *view.Items
	item      *view.Item
	log       *view.Log
	locks     *view.Locks
	status    *view.Status // for the sessions on the page Locks
	rescue    *view.Rescue
	kept      *view.RescueDetail
	err       error
}

// A reader reads what the screen shows, after events and when the person asks.
type reader struct {
	views Views
	clock func() time.Time
	send  func(facts)

	asked    chan struct{} // the person wants something else
	happened chan struct{} // there are new events

	mu   sync.Mutex
	want wants
}

func newReader(views Views, clock func() time.Time, send func(facts)) *reader {
	return &reader{views: views, clock: clock, send: send, asked: make(chan struct{}, 1), happened: make(chan struct{}, 1)}
}

// ask changes what is read; now: at once.
func (r *reader) ask(w wants, now bool) {
	r.mu.Lock()
	r.want = w
	r.mu.Unlock()
	if now {
		r.again()
	}
}

// again reads as soon as possible.
func (r *reader) again() { signal(r.asked) }

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // it is signaled already
	}
}

func (r *reader) wanted() wants {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.want
}

// listen signals new events until ctx ends.
func (r *reader) listen(ctx context.Context, events *feed.Feed) {
	for seen := events.Last(); ; {
		news, err := events.Next(ctx, seen)
		if err != nil {
			return
		}
		seen = news[len(news)-1].Seq
		signal(r.happened)
	}
}

// How often is read. Reading takes every document that changed, so most of the time is left to
// the work itself.
const (
	whileWorking = 2 * time.Second // the last lines of agents are no events
	whileIdle    = 30 * time.Second
	afterEvent   = 250 * time.Millisecond // the shortest time between two readings because of events
	lookAtLog    = 400 * time.Millisecond // between two looks at the size of an open log
	share        = 4                      // a reading is followed by this many times its duration
)

// loop reads until ctx ends.
func (r *reader) loop(ctx context.Context) {
	due, tail := time.NewTimer(0), time.NewTicker(time.Hour)
	defer due.Stop()
	defer tail.Stop()
	var earliest time.Time
	var log *view.Log
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.asked:
		case <-r.happened:
			if wait := time.Until(earliest); wait > 0 {
				due.Reset(wait)
				continue
			}
		case <-due.C:
		case <-tail.C:
			if !hasGrown(log) {
				continue
			}
		}
		began := time.Now()
		f := r.read(ctx, r.wanted())
		if ctx.Err() != nil {
			return
		}
		took := time.Since(began)
		earliest = time.Now().Add(max(afterEvent, share*took))
		if log = f.log; log != nil {
			tail.Reset(lookAtLog)
		} else {
			tail.Reset(time.Hour)
		}
		r.send(f)
		due.Reset(max(f.interval(), share*took))
	}
}

// hasGrown reports whether there is more of a log. The start of a character at its end does not
// count.
func hasGrown(log *view.Log) bool {
	if log == nil {
		return false
	}
	info, err := os.Stat(log.Path)
	return err == nil && (info.Size() != log.Size || log.Next+utf8.UTFMax < log.Size)
}

// interval returns when to read again without an event.
func (f facts) interval() time.Duration {
	if f.now == nil {
		return whileWorking
	}
	for _, s := range f.now.Slots {
		if s.Taken > 0 {
			return whileWorking
		}
	}
	return whileIdle
}

// read reads what is wanted. The first error ends it.
func (r *reader) read(ctx context.Context, w wants) (f facts) {
	f.of = w
	get := func(wanted bool, read func() error) {
		if f.err == nil && wanted {
			f.err = read()
		}
	}
	get(true, func() (err error) { f.now, err = r.views.Now(ctx, 0); return err })
	get(w.page == decidePage, func() (err error) { f.decisions, err = r.views.Decisions(ctx, ""); return err })
	get(w.page == boardPage, func() (err error) { f.board, err = r.views.Board(ctx, ""); return err })
	get(w.page == workPage, func() (err error) { f.items, err = r.views.Items(ctx, view.ItemsQuery{}); return err })
	get(w.page == locksPage, func() (err error) { f.locks, err = r.views.Locks(ctx); return err })
	get(w.page == locksPage, func() (err error) { f.status, err = r.views.Status(ctx); return err })
	get(w.page == rescuePage, func() (err error) { f.rescue, err = r.views.Rescue(ctx); return err })
	get(w.ref != progress.Ref{}, func() (err error) { f.decision, err = r.views.Decision(ctx, "", w.ref); return err })
	get(w.kept != "", func() (err error) { f.kept, err = r.views.Rescued(ctx, w.kept); return err })
	get(w.item != "", func() (err error) {
		if f.item, err = r.views.Item(ctx, w.item); err != nil || f.item.Log == nil {
			return err
		}
		f.log, err = r.views.ItemLog(ctx, w.item, w.from)
		return err
	})
	return f
}
