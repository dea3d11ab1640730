package view

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/store"
)

// A Reader answers questions about one open codebase. Any number of goroutines can use
// it. They share its answers, so nothing may change an answer.
type Reader struct {
	project *project.Project
	journal *run.Journal
	shared  sharedReads
	changes changes
	grants  grants
	laneOf  laneMemory
	items   itemNames
	flow    kept[string] // the current flow
	causes  *conduct.CauseReader

	found  sync.Map // a *kept[discovery] by flow
	probed kept[Enforcement]

	mu     sync.Mutex
	units  map[string]*unit // units by flow and folder
	rescue rescueCache
}

// kept is a value that costs much to compute.
type kept[T any] struct {
	mu    sync.Mutex
	value T
	at    time.Time // when the value was computed
}

// get returns the value. It computes the value first if the stored one is older than limit.
func (k *kept[T]) get(limit time.Duration, compute func() T) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) >= limit {
		k.value, k.at = compute(), time.Now()
	}
	return k.value
}

// New makes a Reader. The caller closes the codebase.
func New(a *project.Project) *Reader {
	return &Reader{project: a, journal: conduct.Journal(a), causes: conduct.NewCauseReader(a), units: map[string]*unit{}}
}

// Moment is the time of an answer.
type Moment struct {
	At  time.Time `json:"at"`
	Seq uint64    `json:"seq"` // the last event that the answer includes
}

// Seconds is a duration as JSON spells it.
type Seconds float64

func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

func seconds(d time.Duration) Seconds { return Seconds(d.Seconds()) }

// at calls the function read, if it is not nil, with a view of the store, and returns the moment of
// that view.
func (rd *Reader) at(ctx context.Context, read func(store.Reader) error) (m Moment, err error) {
	err = rd.project.Store.View(ctx, func(r store.Reader) error {
		last, err := r.Events(store.EventQuery{Limit: 1, Latest: true})
		if err != nil {
			return err
		}
		m = Moment{At: r.Now().Wall.UTC()}
		if len(last) > 0 {
			m.Seq = last[0].Seq
		}
		if read == nil {
			return nil
		}
		return read(r)
	})
	return m, err
}

// Record is the complete history in the store, each list in order.
type Record struct {
	Events   []lockkeeper.Event
	Landings []*lockkeeper.Landing
	Items    []*lockkeeper.Item
}

// ReadRecord reads the complete history as of one moment.
func ReadRecord(ctx context.Context, a *project.Project) (*Record, error) {
	rec := &Record{}
	err := a.Store.View(ctx, func(r store.Reader) (err error) {
		*rec = Record{}
		if rec.Landings, err = r.Landings(store.LandingQuery{}); err != nil {
			return err
		}
		for ev, err := range eachEvent(r, store.EventQuery{}) {
			if err != nil {
				return err
			}
			rec.Events = append(rec.Events, ev)
		}
		defer func() { slices.Reverse(rec.Items) }()
		return job.EachItem(r, "", func(it *lockkeeper.Item) bool { // visits the newest items first
			rec.Items = append(rec.Items, it)
			return true
		})
	})
	return rec, err
}

// sharedReads lets callers with the same question share one read: a hundred pages that
// one event refreshes cost one read. A caller never gets a read that began before its
// call, because that could lack the caller's own change. A caller that arrives during a
// read shares the next one.
type sharedReads struct {
	mu     sync.Mutex
	byName map[string]*reads
}

type reads struct {
	turn    chan struct{} // has an element while a read runs
	next    *read         // the read for callers who arrive now; nil: no caller waits for one
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

// leave ends one caller's wait for the answer to a question. It removes the question after its last
// caller.
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
