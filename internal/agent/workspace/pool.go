package workspace

import (
	"context"
	"crypto/sha256"
	"hash"
	"runtime"
	"sync"
)

// A pool is a set of goroutines that runs tasks, the latest first. Tasks may add others. If
// a task fails, the remaining ones are dropped, so each task must close what it opens.
type pool struct {
	mu    sync.Mutex
	ready sync.Cond
	tasks []task
	busy  int
	err   error
}

type task func(*worker) error

// A worker is the state of one goroutine.
type worker struct {
	ctx context.Context
	buf []byte
	sum hash.Hash

	shared bool // the copied state belongs to other workspaces, too
}

func newWorker(ctx context.Context) *worker {
	return &worker{ctx: ctx, sum: sha256.New()}
}

// mostAtOnce is the maximum size of a read.
const mostAtOnce = 256 << 10

// room returns a buffer for a file of a size, with one byte more to detect its end.
func (h *worker) room(size int64) []byte {
	if want := int(min(size+1, mostAtOnce)); len(h.buf) < want {
		h.buf = make([]byte, min(max(want, 2*len(h.buf), 4<<10), mostAtOnce))
	}
	return h.buf
}

// poolSize returns the number of goroutines, some of which wait for the disk.
func poolSize() int { return min(max(4, 2*runtime.GOMAXPROCS(0)), 16) }

// runPool runs a task and all tasks that it adds, and returns when they have ended.
func runPool(ctx context.Context, first func(*pool) task) error {
	c := &pool{}
	c.ready.L = &c.mu
	c.tasks = []task{first(c)}
	var all sync.WaitGroup
	for range poolSize() {
		all.Go(func() {
			h := newWorker(ctx)
			for t := c.next(ctx); t != nil; t = c.next(ctx) {
				c.done(t(h))
			}
		})
	}
	all.Wait()
	return c.err
}

func (c *pool) add(t task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks = append(c.tasks, t)
	c.ready.Signal()
}

// next waits for a task. It returns nil if there will be no more tasks.
func (c *pool) next(ctx context.Context) task {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.tasks) == 0 && c.busy > 0 && c.err == nil {
		c.ready.Wait()
	}
	if c.err == nil && ctx.Err() != nil {
		c.err = context.Cause(ctx)
		c.ready.Broadcast()
	}
	if c.err != nil || len(c.tasks) == 0 {
		return nil
	}
	last := len(c.tasks) - 1
	t := c.tasks[last]
	c.tasks = c.tasks[:last]
	c.busy++
	return t
}

func (c *pool) done(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if c.err == nil {
		c.err = err
	}
	if c.err != nil || c.busy == 0 && len(c.tasks) == 0 {
		c.ready.Broadcast()
	}
}
