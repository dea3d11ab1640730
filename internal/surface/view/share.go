package view

import (
	"context"
	"errors"
	"sync"
)

// flights let callers who want the same at the same time share one look: a hundred pages
// that an event refreshes cost one reading. Nobody is given what was read before they
// asked, since it may lack what they have just done: whoever comes while a look is under
// way shares the next one.
type flights struct {
	mu     sync.Mutex
	routes map[string]*route
}

// route is the looks for one answer: the one that is under way, and the one for those who
// came since.
type route struct{ now, next *flight }

type flight struct {
	landed chan struct{} // closed once there is an answer
	value  any
	err    error
}

var errCrashed = errors.New("the look that this one was shared with did not come to its end")

// share answers by a look of this caller, or of another who asks for the same. The look
// does not end with one caller's context, since others may wait for it.
func share[T any](ctx context.Context, f *flights, name string, look func(context.Context) (T, error)) (value T, err error) {
	mine := f.board(name)
	for {
		leads, before := f.start(name, mine)
		if leads {
			f.fly(name, mine, func() (any, error) { return look(context.WithoutCancel(ctx)) })
		}
		if leads || before == nil {
			value, _ = mine.value.(T)
			return value, mine.err
		}
		select {
		case <-before.landed:
		case <-ctx.Done():
			return value, context.Cause(ctx)
		}
	}
}

// board is the flight that somebody who comes now takes.
func (f *flights) board(name string) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.routes == nil {
		f.routes = map[string]*route{}
	}
	r := f.routes[name]
	if r == nil {
		r = &route{}
		f.routes[name] = r
	}
	if r.next == nil {
		r.next = &flight{landed: make(chan struct{}), err: errCrashed}
	}
	return r.next
}

// start says whether the caller is to carry out its flight, or else what to wait for
// first; neither: it has landed.
func (f *flights) start(name string, mine *flight) (leads bool, before *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-mine.landed:
		return false, nil
	default:
	}
	r := f.routes[name]
	if r.now != nil {
		return false, r.now
	}
	r.now, r.next = mine, nil
	return true, nil
}

// fly carries out a flight. It lands whatever happens.
func (f *flights) fly(name string, mine *flight, look func() (any, error)) {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		close(mine.landed)
		if r := f.routes[name]; r.next == nil {
			delete(f.routes, name)
		} else {
			r.now = nil
		}
	}()
	mine.value, mine.err = look()
}
