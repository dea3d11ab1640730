package memstore

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Now reads the clocks. Default: the clocks of the process.
	Now func() store.Moment
	// KeepEvents bounds the event log, by whole chunks. Default 4,096.
	KeepEvents int
}

// Store keeps one space in memory.
type Store struct {
	space string
	opt   Options

	mu       sync.Mutex
	closed   bool
	trie     trie
	byID     map[string]*recordCell
	tickets  []*recordCell // records by rising ticket; removed ones stay until compact
	left     int           // how many cells in tickets are removed
	free     []*recordCell // removed cells, for reuse
	waiters  map[uint64][]*recordCell
	log      eventLog
	denials  map[string]denial
	landings landings
	queue    queue
	tx       tx // reused, because transactions are serial

	listenMu  sync.Mutex
	watched   atomic.Int32 // number of listeners from Watch
	listeners map[string][]*listener
}

// A recordCell holds the current version of a record. Records are replaced, never changed.
type recordCell struct {
	rec   *store.Record
	nodes []*node // nodes of the locks, in their order
	left  bool
}

type denial struct {
	digest uint64
	at     time.Time
}

// New returns an empty space.
func New(space string, opt Options) *Store {
	if opt.Now == nil {
		origin := time.Now()
		opt.Now = func() store.Moment {
			now := time.Now()
			return store.Moment{Lease: lockkeeper.Instant(now.Sub(origin)) + 1, Wall: now}
		}
	}
	if opt.KeepEvents <= 0 {
		opt.KeepEvents = 4_096
	}
	s := &Store{
		space: space, opt: opt,
		byID: map[string]*recordCell{}, waiters: map[uint64][]*recordCell{},
		denials: map[string]denial{}, landings: landings{open: map[uint64]*lockkeeper.Landing{}, byCommit: map[string]*lockkeeper.Landing{}, byPath: map[string][]pathChange{}}, queue: newQueue(),
		listeners: map[string][]*listener{},
	}
	s.tx.Store = s
	return s
}

func (s *Store) Space() string { return s.space }

func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	woken, err := s.update(ctx, fn)
	s.wake(woken)
	return err
}

// watchID is the id that every change of the log wakes.
const watchID = "every change"

func (s *Store) Watch(ctx context.Context) (store.Listener, error) { return s.Listen(ctx, watchID) }

func (s *Store) update(ctx context.Context, fn func(store.Tx) error) (woken []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	t := &s.tx
	t.now = s.opt.Now()
	done := false
	defer func() {
		if !done || err != nil {
			t.rollback()
			woken = nil
		}
		clear(t.undo)
		t.undo, t.woken, t.located.locks, t.stale = t.undo[:0], nil, nil, time.Time{}
		s.compact()
	}()
	err = fn(t)
	done = true
	if s.watched.Load() > 0 {
		t.woken = append(t.woken, watchID)
	}
	if err == nil && !t.stale.IsZero() {
		s.landings.prune(t.stale)
		s.queue.prune(t.stale)
	}
	return t.woken, err
}

// compact drops removed cells once they are the larger part of the list.
func (s *Store) compact() {
	if s.left < 64 || s.left < len(s.tickets)/2 {
		return
	}
	s.tickets = slices.DeleteFunc(s.tickets, func(o *recordCell) bool {
		if o.left {
			s.recycle(o)
		}
		return o.left
	})
	s.left = 0
}

// recycle keeps a cell for reuse. A few are enough, and cells of large requests use too much
// memory.
func (s *Store) recycle(o *recordCell) {
	if len(s.free) < 64 && cap(o.nodes) <= 64 {
		o.rec = nil
		s.free = append(s.free, o)
	}
}

func (s *Store) newCell(rec *store.Record) *recordCell {
	last := len(s.free) - 1
	if last < 0 {
		return &recordCell{rec: rec}
	}
	o := s.free[last]
	s.free = s.free[:last]
	o.rec, o.left = rec, false
	return o
}

func (s *Store) View(ctx context.Context, fn func(store.Reader) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	return fn(&tx{Store: s, now: s.opt.Now()})
}

func (s *Store) usable(ctx context.Context) error {
	if ctx.Err() != nil { // Err is cheaper than Cause
		return context.Cause(ctx)
	}
	if s.closed {
		return &lockkeeper.StoreError{Store: "memory", Reason: "closed"}
	}
	return nil
}

func (s *Store) Listen(_ context.Context, id string) (store.Listener, error) {
	b := &listener{store: s, id: id, woken: make(chan struct{}, 1)}
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	s.listeners[id] = append(s.listeners[id], b)
	if id == watchID {
		s.watched.Add(1)
	}
	return b, nil
}

func (s *Store) wake(ids []string) {
	if len(ids) == 0 {
		return
	}
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	for _, id := range ids {
		for _, b := range s.listeners[id] {
			select {
			case b.woken <- struct{}{}:
			default:
			}
		}
	}
}

type listener struct {
	store *Store
	id    string
	woken chan struct{}
}

func (b *listener) Woken() <-chan struct{} { return b.woken }

func (b *listener) Close() error {
	s := b.store
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	if b.id == watchID {
		s.watched.Add(-1)
	}
	s.listeners[b.id] = slices.DeleteFunc(s.listeners[b.id], func(other *listener) bool { return other == b })
	if len(s.listeners[b.id]) == 0 {
		delete(s.listeners, b.id)
	}
	return nil
}
