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

// Options of a store; the zero value is ready to use.
type Options struct {
	// Now reads the clocks; default: the process's own.
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
	byID     map[string]*slot
	line     []*slot // by rising ticket; slots that left stay until compacted
	left     int     // how many of line have left
	free     []*slot // recycled
	parked   map[uint64][]*slot
	log      eventLog
	denials  map[string]denial
	landings landings
	queue    queue
	tx       tx // reused: transactions are serial

	listenMu  sync.Mutex
	watched   atomic.Int32 // how many watch the log
	listeners map[string][]*listener
}

// slot is the place of a record. The record in it is replaced, never changed.
type slot struct {
	rec   *store.Record
	nodes []*node // where its locks are, in their order
	left  bool
}

type denial struct {
	digest uint64
	at     time.Time
}

// New makes an empty space.
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
		byID: map[string]*slot{}, parked: map[uint64][]*slot{},
		denials: map[string]denial{}, landings: newLandings(), queue: newQueue(),
		listeners: map[string][]*listener{},
	}
	s.tx.Store = s
	return s
}

// Space implements store.Store.
func (s *Store) Space() string { return s.space }

// Close implements store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Update implements store.Store.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	woken, err := s.update(ctx, fn)
	s.wake(woken)
	return err
}

// watchID is the id that every change of the log wakes.
const watchID = "every change"

// Watch implements store.Watcher.
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
		t.undo, t.woken, t.asked.locks, t.stale = t.undo[:0], nil, nil, time.Time{}
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

// compact forgets slots that left once they are the larger part of the line.
func (s *Store) compact() {
	if s.left < 64 || s.left < len(s.line)/2 {
		return
	}
	s.line = slices.DeleteFunc(s.line, func(o *slot) bool {
		if o.left {
			s.recycle(o)
		}
		return o.left
	})
	s.left = 0
}

// recycle keeps a slot that nothing leads to any more for reuse. A few are
// enough, and those of large requests are not worth their memory.
func (s *Store) recycle(o *slot) {
	if len(s.free) < 64 && cap(o.nodes) <= 64 {
		o.rec = nil
		s.free = append(s.free, o)
	}
}

func (s *Store) newSlot(rec *store.Record) *slot {
	last := len(s.free) - 1
	if last < 0 {
		return &slot{rec: rec}
	}
	o := s.free[last]
	s.free = s.free[:last]
	o.rec, o.left = rec, false
	return o
}

// View implements store.Store.
func (s *Store) View(ctx context.Context, fn func(store.Reader) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	return fn(&tx{Store: s, now: s.opt.Now()})
}

func (s *Store) usable(ctx context.Context) error {
	if ctx.Err() != nil { // which is cheaper to ask than the cause
		return context.Cause(ctx)
	}
	if s.closed {
		return &lockkeeper.StoreError{Store: "memory", Reason: "closed"}
	}
	return nil
}

// Listen implements store.Store.
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
	kept := s.listeners[b.id][:0]
	for _, other := range s.listeners[b.id] {
		if other != b {
			kept = append(kept, other)
		}
	}
	if len(kept) == 0 {
		delete(s.listeners, b.id)
	} else {
		s.listeners[b.id] = kept
	}
	return nil
}
