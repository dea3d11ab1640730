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

func (b *bench) newMemory() *lock.Manager {
	return b.manager(memstore.New("bench", memstore.Options{}), lock.Options{})
}

// spread returns requests in many places of the tree, so that a measured request
// does not profit from caches that the previous one filled.
func spread() []lockkeeper.Request {
	var reqs []lockkeeper.Request
	for n := range 256 {
		reqs = append(reqs, request("asked", n*7))
	}
	return reqs
}

func memoryMap(b *bench) []row {
	m := b.newMemory()
	var mu sync.Mutex
	held := map[string]string{}
	keys := paths("asked", 1)
	guarded := times(func() {
		mu.Lock()
		for _, k := range keys {
			if held[k] != "" {
				check(errors.New("held by " + held[k]))
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
	})
	t := b.race(memorySlice, b.acquireAndRelease(m, request("asked", 1)), guarded)
	return []row{row{
		What: "Memory: 10 paths, acquire and release, to a map behind a mutex", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "The manager on the memory store acquires and releases ten files, with id, token, lease and two events. Under a mutex, the peer looks up the same ten strings in a Go map, sets them and deletes them.",
	}.atMost(median(ratios(t[0], t[1])), 6, "%.1f×")}
}

func memoryGrowth(b *bench) []row {
	few, many := b.newMemory(), b.newMemory()
	b.hold(few, 1_000)
	b.hold(many, 100_000)
	t := b.race(memorySlice, b.acquireAndRelease(many, spread()...), b.acquireAndRelease(few, spread()...))
	return []row{row{
		What: "Memory: 100,000 active grants to 1,000", Ours: ns(median(t[0])), Peer: ns(median(t[1])) + " (ours, 1,000)",
		How: "256 requests are acquired and released in turn, beside 100,000 active grants of ten paths each, and beside 1,000.",
	}.atMost(100*(median(ratios(t[0], t[1]))-1), 40, "%+.1f %%")}
}

func memoryScan(b *bench) []row {
	const grants = 10_000
	m := b.newMemory()
	b.hold(m, grants)
	var mu sync.Mutex
	var table [][]lockkeeper.Lock // without an index
	for i := range grants {
		table = append(table, request("held", i).Locks)
	}
	asked := request("asked", 1).Locks
	scan := times(func() {
		mu.Lock()
		for _, held := range table {
			for _, h := range held {
				for _, a := range asked {
					if a.Conflicts(h) {
						check(errors.New("a conflict between requests that do not overlap"))
					}
				}
			}
		}
		table = append(table, asked)
		mu.Unlock()
		mu.Lock()
		table = table[:len(table)-1]
		mu.Unlock()
	})
	t := b.race(memorySlice, b.acquireAndRelease(m, request("asked", 1)), scan)
	return []row{row{
		What: "Memory: faster than a linear scan at 10,000 grants", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "Ten paths are acquired and released beside 10,000 active grants of ten paths. The peer compares each requested lock with each held one, in a slice, and keeps no events.",
	}.atLeast(median(ratios(t[1], t[0])), 500, "%.0f×")}
}

func memoryWebdav(b *bench) []row {
	m := b.newMemory()
	ls := webdav.NewMemLS()
	names := paths("asked", 1)
	tokens := make([]string, len(names))
	inTurn := times(func() {
		now := time.Now()
		for i, name := range names {
			tokens[i] = get(ls.Create(now, webdav.LockDetails{Root: "/" + name, Duration: 30 * time.Minute, ZeroDepth: true}))
		}
		for _, token := range tokens {
			check(ls.Unlock(now, token))
		}
	})
	t := b.race(memorySlice, b.acquireAndRelease(m, request("asked", 1)), inTurn)
	return []row{row{
		What: "Memory: faster than webdav MemLS", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "The peer is the lock system of golang.org/x/net/webdav. It locks ten files one after the other, for 30 minutes each, and then unlocks them.",
	}.atLeast(median(ratios(t[1], t[0])), 1, "%.2f×")}
}

func memoryWaiters(b *bench) []row {
	const waiters = 1_000
	quiet, queued := b.newMemory(), b.newMemory()
	ctx, cancel := context.WithCancel(b.ctx)
	var waiting sync.WaitGroup
	b.cleanup(func() error {
		cancel()
		waiting.Wait()
		return nil
	})
	b.hold(quiet, 1)
	b.hold(queued, 1)
	for range waiters {
		waiting.Go(func() { queued.Acquire(ctx, request("held", 0), time.Hour) }) // this wait ends with ctx
	}
	for len(get(queued.Requests(ctx))) != 1+waiters {
		time.Sleep(10 * time.Millisecond)
	}
	// The slices are long enough to include renewals: each waiter renews its place every 5 s.
	t := b.race(5*memorySlice, b.acquireAndRelease(queued, request("asked", 1)), b.acquireAndRelease(quiet, request("asked", 1)))
	return []row{row{
		What: "Memory: 1,000 queued waiters to none", Ours: ns(mean(t[0])), Peer: ns(mean(t[1])) + " (ours, none)",
		How: "Free paths are acquired and released while 1,000 requests wait for ten other paths and renew their places in the wait list. The figures are means, because renewals may come in bursts. A difference of up to 10 % does not count.",
	}.atMost(100*(mean(t[0])/mean(t[1])-1), 10, "%+.1f %%")}
}

func memoryBytes(b *bench) []row {
	const grants = 10_000
	var perPath []float64
	for range b.rounds {
		m := lock.New(memstore.New("bench", memstore.Options{}), lock.Options{})
		before := heap()
		b.hold(m, grants)
		perPath = append(perPath, (heap()-before)/(grants*pathsPerGrant))
		runtime.KeepAlive(m)
		m.Close()
	}
	return []row{row{
		What: "Memory: bytes for each held path", Ours: fmt.Sprintf("%.0f B", median(perPath)), Peer: "–",
		How: "This is the growth of the heap, after garbage collection, for 100,000 held paths in grants of ten. It includes records, index, events and the strings of the paths.",
	}.atMost(median(perPath), 400, "%.0f B")}
}

// heap returns the number of bytes in use after a garbage collection.
func heap() float64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC() // the second call frees what the first one finalized
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}
