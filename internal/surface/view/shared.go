package view

import (
	"context"
	"errors"
	"sync"
)

// sharedReads lets callers with the same question share one read: a hundred pages that
// one event refreshes cost one read. A caller never gets a read that began before its
// call, because that could lack the caller's own change. A caller that arrives during a
// read shares the next one.
type sharedReads struct {
	mu     sync.Mutex
	byName map[string]*reads
}

// reads are the reads for one question: the running one, and the one for callers that
// arrived since.
type reads struct{ now, next *read }

type read struct {
	done  chan struct{} // closed when the result is set
	value any
	err   error
}

var errPanicked = errors.New("the shared read panicked")

// share answers with the result of do, called by this caller or by another one with the
// same name. The read is not canceled with one caller's context, because others may wait
// for it.
func share[T any](ctx context.Context, s *sharedReads, name string, do func(context.Context) (T, error)) (value T, err error) {
	mine := s.join(name)
	for {
		leads, before := s.start(name, mine)
		if leads {
			s.do(name, mine, func() (any, error) { return do(context.WithoutCancel(ctx)) })
		}
		if leads || before == nil {
			value, _ = mine.value.(T)
			return value, mine.err
		}
		select {
		case <-before.done:
		case <-ctx.Done():
			return value, context.Cause(ctx)
		}
	}
}

// join returns the read that a caller who arrives now shares.
func (s *sharedReads) join(name string) *read {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*reads{}
	}
	r := s.byName[name]
	if r == nil {
		r = &reads{}
		s.byName[name] = r
	}
	if r.next == nil {
		r.next = &read{done: make(chan struct{}), err: errPanicked}
	}
	return r.next
}

// start reports whether the caller must do its read, or else which read to wait for
// first; nil: its read is done.
func (s *sharedReads) start(name string, mine *read) (leads bool, before *read) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-mine.done:
		return false, nil
	default:
	}
	r := s.byName[name]
	if r.now != nil {
		return false, r.now
	}
	r.now, r.next = mine, nil
	return true, nil
}

// do does a read and wakes its callers, also if it panics.
func (s *sharedReads) do(name string, mine *read, do func() (any, error)) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(mine.done)
		if r := s.byName[name]; r.next == nil {
			delete(s.byName, name)
		} else {
			r.now = nil
		}
	}()
	mine.value, mine.err = do()
}
