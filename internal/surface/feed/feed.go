package feed

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// Options configures a Feed. The zero value is ready to use.
type Options struct {
	// Keep is the minimum number of latest events kept in memory. Default 4,096.
	Keep int
	// Page is the maximum number of events that Next returns. Default 1,000.
	Page int
	// Poll is the interval at which the log is read if the store cannot signal new events.
	// If it can, the log is also read every ten intervals. Default 200 ms.
	Poll time.Duration
	// Trouble is called with errors of the store, which the feed survives. Optional.
	Trouble func(error)
}

// readers limits how many watchers read from the log at once. Without this limit, all clients that reconnect
// after a restart would delay writers.
const readers = 4

// A Feed follows the event log of one space.
type Feed struct {
	store store.Store
	opt   Options
	stop  context.CancelCauseFunc
	done  sync.WaitGroup
	left  error         // error from closing the store's watch; valid after done
	turns chan struct{} // limits the watchers that read from the log

	mu     sync.Mutex
	recent []lockkeeper.Event // the latest events, without a gap
	last   uint64             // number of the last known event
	grown  chan struct{}      // closed when there are new events
	err    error              // why the feed ended
}

// Open follows a log from its current end.
func Open(ctx context.Context, st store.Store, opt Options) (*Feed, error) {
	if opt.Keep <= 0 {
		opt.Keep = 4_096
	}
	if opt.Page <= 0 {
		opt.Page = 1_000
	}
	if opt.Poll <= 0 {
		opt.Poll = 200 * time.Millisecond
	}
	if opt.Trouble == nil {
		opt.Trouble = func(error) {}
	}
	f := &Feed{store: st, opt: opt, turns: make(chan struct{}, readers), grown: make(chan struct{})}
	latest, err := f.read(ctx, store.EventQuery{Latest: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(latest) > 0 {
		f.last = latest[0].Seq
	}
	var woken <-chan struct{}
	interval, unwatch := opt.Poll, func() error { return nil }
	if w, ok := st.(store.Watcher); ok {
		watch, err := w.Watch(ctx)
		if err != nil {
			return nil, err
		}
		woken, unwatch, interval = watch.Woken(), watch.Close, 10*opt.Poll
	}
	following, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	f.stop = stop
	f.done.Go(func() {
		f.end(f.follow(following, woken, interval))
		f.left = unwatch()
	})
	return f, nil
}

// ErrClosed is the error of Next after Close.
var ErrClosed = errors.New("the feed was closed")

// Close ends the feed and every Next that waits.
func (f *Feed) Close() error {
	f.stop(ErrClosed)
	f.done.Wait()
	return f.left
}

// follow reads new events until ctx ends. It continues after errors of the store.
func (f *Feed) follow(ctx context.Context, woken <-chan struct{}, interval time.Duration) error {
	again := time.NewTicker(interval)
	defer again.Stop()
	for {
		for more := true; more; {
			events, err := f.read(ctx, store.EventQuery{After: f.last, Limit: f.opt.Page})
			if err != nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				f.opt.Trouble(err)
			}
			more = err == nil && len(events) == f.opt.Page
			f.add(events)
		}
		select {
		case <-woken:
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *Feed) read(ctx context.Context, q store.EventQuery) (events []lockkeeper.Event, err error) {
	err = f.store.View(ctx, func(r store.Reader) error {
		events, err = r.Events(q)
		return err
	})
	return events, err
}

func (f *Feed) add(events []lockkeeper.Event) {
	if len(events) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent = append(f.recent, events...)
	if len(f.recent) > 2*f.opt.Keep { // the events are copied, because watchers still read the old array
		f.recent = append(f.recent[:0:0], f.recent[len(f.recent)-f.opt.Keep:]...)
	}
	f.last = events[len(events)-1].Seq
	close(f.grown)
	f.grown = make(chan struct{})
}

func (f *Feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	close(f.grown)
}

// Last returns the number of the last event that the feed has read.
func (f *Feed) Last() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Next returns up to one page of the events after a number, and waits for the first. If the
// log has pruned events, the numbers have a gap. Callers must not change the result, which
// is shared.
func (f *Feed) Next(ctx context.Context, after uint64) ([]lockkeeper.Event, error) {
	for {
		events, behind, grown, err := f.after(after)
		if err != nil || len(events) > 0 {
			return events, err
		}
		if behind {
			events, err := f.replay(ctx, after)
			if err != nil || len(events) > 0 {
				return events, err
			}
			after = f.kept() // the log has pruned the events before this number
			continue
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// replay reads a page of the log, one of a few callers at a time.
func (f *Feed) replay(ctx context.Context, after uint64) ([]lockkeeper.Event, error) {
	select {
	case f.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-f.turns }()
	return f.read(ctx, store.EventQuery{After: after, Limit: f.opt.Page})
}

// kept returns the number before that of the first event in memory, or the number of the last event if
// none is in memory.
func (f *Feed) kept() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.recent) == 0 {
		return f.last
	}
	return f.recent[0].Seq - 1
}

// after returns the events in memory after a number. behind means that the next event is
// no longer in memory.
func (f *Feed) after(seq uint64) (events []lockkeeper.Event, behind bool, grown <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case seq < f.last && (len(f.recent) == 0 || seq+1 < f.recent[0].Seq):
		return nil, true, nil, nil
	case seq < f.last:
		first, _ := slices.BinarySearchFunc(f.recent, seq+1, func(ev lockkeeper.Event, seq uint64) int { return cmp.Compare(ev.Seq, seq) })
		return f.recent[first:min(len(f.recent), first+f.opt.Page)], false, nil, nil
	}
	return nil, false, f.grown, f.err
}
