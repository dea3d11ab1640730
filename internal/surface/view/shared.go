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

// reads are the reads for one question.
type reads struct {
	turn    chan struct{} // has an element while a read runs
	next    *read         // the read that callers share who arrive now; nil: none waits for it
	callers int           // callers that wait for a read
}

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
	of, mine := s.join(name)
	defer s.leave(name, of)
	select {
	case of.turn <- struct{}{}:
		s.lead(of, mine, func() (any, error) { return do(context.WithoutCancel(ctx)) })
	case <-mine.done:
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
	value, _ = mine.value.(T)
	return value, mine.err
}

// join returns the read that a caller who arrives now shares.
func (s *sharedReads) join(name string) (*reads, *read) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*reads{}
	}
	of := s.byName[name]
	if of == nil {
		of = &reads{turn: make(chan struct{}, 1)}
		s.byName[name] = of
	}
	if of.next == nil {
		of.next = &read{done: make(chan struct{}), err: errPanicked}
	}
	of.callers++
	return of, of.next
}

// leave forgets a question when its last caller leaves.
func (s *sharedReads) leave(name string, of *reads) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.callers--; of.callers == 0 {
		delete(s.byName, name)
	}
}

// lead does a read, unless another caller has done it, and wakes its callers, also if it
// panics. The caller has the turn.
func (s *sharedReads) lead(of *reads, mine *read, do func() (any, error)) {
	defer func() { <-of.turn }()
	s.mu.Lock()
	first := of.next == mine
	if first {
		of.next = nil
	}
	s.mu.Unlock()
	if first {
		defer close(mine.done)
		mine.value, mine.err = do()
	}
}
