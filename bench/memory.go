package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/net/webdav"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store/memstore"
)

const memorySlice = 20 * time.Millisecond

func newMemory() *lock.Manager {
	return lock.New(memstore.New("bench", memstore.Options{}), lock.Options{})
}

// spread are requests in many places of the tree, so that one that is measured
// does not find everything in the cache because it was the last one, too.
func spread() []lockkeeper.Request {
	var reqs []lockkeeper.Request
	for n := range 256 {
		reqs = append(reqs, request("asked", n*7))
	}
	return reqs
}

func memoryMap(ctx context.Context, b *bench) ([]row, error) {
	m := newMemory()
	defer m.Close()
	var mu sync.Mutex
	held := map[string]string{}
	keys := paths("asked", 1)
	guarded := func(n int) error {
		for range n {
			mu.Lock()
			for _, k := range keys {
				if held[k] != "" {
					mu.Unlock()
					return errors.New("held by " + held[k])
				}
			}
			for _, k := range keys {
				held[k] = "bench"
			}
			mu.Unlock()
			mu.Lock()
			for _, k := range keys {
				delete(held, k)
			}
			mu.Unlock()
		}
		return nil
	}
	t, err := b.race(memorySlice, takeAndGive(ctx, m, request("asked", 1)), guarded)
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "Memory: 10 paths, acquire and release, to a map behind a mutex", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "The manager on the memory store acquires and releases ten files, with id, token, lease and two events; the peer looks the same ten strings up in a Go map, sets them and deletes them, under a mutex.",
	}.atMost(median(ratios(t[0], t[1])), 6, "%.1f×")}, nil
}

func memoryGrowth(ctx context.Context, b *bench) ([]row, error) {
	few, many := newMemory(), newMemory()
	defer few.Close()
	defer many.Close()
	if err := errors.Join(hold(ctx, few, 1_000), hold(ctx, many, 100_000)); err != nil {
		return nil, err
	}
	t, err := b.race(memorySlice, takeAndGive(ctx, many, spread()...), takeAndGive(ctx, few, spread()...))
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "Memory: 100,000 active grants to 1,000", Ours: ns(median(t[0])), Peer: ns(median(t[1])) + " (ours, 1,000)",
		How: "The same acquire and release, over 256 requests in turn, beside 100,000 and beside 1,000 active grants of ten paths each.",
	}.atMost(100*(median(ratios(t[0], t[1]))-1), 40, "%+.1f %%")}, nil
}

// scanned is a lock table without an index.
type scanned struct {
	mu     sync.Mutex
	grants [][]lockkeeper.Lock
}

func (s *scanned) acquire(asked []lockkeeper.Lock) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, held := range s.grants {
		for _, h := range held {
			for _, a := range asked {
				if a.Conflicts(h) {
					return false
				}
			}
		}
	}
	s.grants = append(s.grants, asked)
	return true
}

func (s *scanned) releaseLast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants = s.grants[:len(s.grants)-1]
}

func memoryScan(ctx context.Context, b *bench) ([]row, error) {
	const grants = 10_000
	m := newMemory()
	defer m.Close()
	if err := hold(ctx, m, grants); err != nil {
		return nil, err
	}
	s := &scanned{}
	for i := range grants {
		s.grants = append(s.grants, request("held", i).Locks)
	}
	asked := request("asked", 1).Locks
	scan := func(n int) error {
		for range n {
			if !s.acquire(asked) {
				return errors.New("a conflict between requests that do not overlap")
			}
			s.releaseLast()
		}
		return nil
	}
	t, err := b.race(memorySlice, takeAndGive(ctx, m, request("asked", 1)), scan)
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "Memory: faster than a linear scan at 10,000 grants", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "Beside 10,000 active grants of ten paths; the peer compares each asked lock with each held one, in a slice, and keeps no events.",
	}.atLeast(median(ratios(t[1], t[0])), 500, "%.0f×")}, nil
}

func memoryWebdav(ctx context.Context, b *bench) ([]row, error) {
	m := newMemory()
	defer m.Close()
	ls := webdav.NewMemLS()
	names := paths("asked", 1)
	tokens := make([]string, len(names))
	inTurn := func(n int) error {
		for range n {
			now := time.Now()
			for i, name := range names {
				var err error
				if tokens[i], err = ls.Create(now, webdav.LockDetails{Root: "/" + name, Duration: 30 * time.Minute, ZeroDepth: true}); err != nil {
					return err
				}
			}
			for _, token := range tokens {
				if err := ls.Unlock(now, token); err != nil {
					return err
				}
			}
		}
		return nil
	}
	t, err := b.race(memorySlice, takeAndGive(ctx, m, request("asked", 1)), inTurn)
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "Memory: faster than webdav MemLS", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "The peer is the lock system of golang.org/x/net/webdav, which locks one file at a time: ten files locked, then unlocked, in turn, with a duration of 30 minutes.",
	}.atLeast(median(ratios(t[1], t[0])), 1, "%.2f×")}, nil
}

func memoryWaiters(ctx context.Context, b *bench) (_ []row, err error) {
	const waiters = 1_000
	ctx, cancel := context.WithCancel(ctx)
	quiet, queued := newMemory(), newMemory()
	var waiting sync.WaitGroup
	defer func() {
		cancel()
		waiting.Wait()
		err = errors.Join(err, quiet.Close(), queued.Close())
	}()
	if err := errors.Join(hold(ctx, quiet, 1), hold(ctx, queued, 1)); err != nil {
		return nil, err
	}
	for range waiters {
		waiting.Go(func() { queued.Acquire(ctx, request("held", 0), time.Hour) }) // ends with ctx
	}
	for {
		entries, err := queued.Requests(ctx)
		if err != nil {
			return nil, err
		}
		if len(entries) == 1+waiters {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	// Long enough to see the waiters renew their places, which they do every 5 s.
	t, err := b.race(5*memorySlice, takeAndGive(ctx, queued, request("asked", 1)), takeAndGive(ctx, quiet, request("asked", 1)))
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "Memory: 1,000 queued waiters to none", Ours: ns(mean(t[0])), Peer: ns(mean(t[1])) + " (ours, none)",
		How: "Acquire and release of free paths while 1,000 requests wait for ten other paths in the wait list and renew their places; means instead of medians, because renewals may come in bursts; up to 10 % counts as no difference.",
	}.atMost(100*(mean(t[0])/mean(t[1])-1), 10, "%+.1f %%")}, nil
}

func memoryBytes(ctx context.Context, b *bench) ([]row, error) {
	const grants = 10_000
	var perPath []float64
	for range b.rounds {
		m := newMemory()
		before := heap()
		if err := hold(ctx, m, grants); err != nil {
			return nil, err
		}
		perPath = append(perPath, (heap()-before)/(grants*pathsPerGrant))
		runtime.KeepAlive(m)
		m.Close()
	}
	return []row{row{
		What: "Memory: bytes for each held path", Ours: fmt.Sprintf("%.0f B", median(perPath)), Peer: "–",
		How: "Growth of the heap after garbage collection for 100,000 held paths in grants of ten: records, index, events and the strings of the paths.",
	}.atMost(median(perPath), 400, "%.0f B")}, nil
}

// heap is how many bytes are in use after a collection.
func heap() float64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one finalised
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}
