//go:build unix

package workspace

import (
	"context"
	"crypto/sha256"
	"hash"
	"runtime"
	"sync"
)

// crew works through tasks, the latest first, which may add further ones. Tasks
// own what they open: of a crew that fails, those left over are dropped.
type crew struct {
	mu    sync.Mutex
	ready sync.Cond
	tasks []task
	busy  int
	err   error
}

type task func(*hand) error

// hand is what one of the crew needs for itself.
type hand struct {
	ctx context.Context
	buf []byte
	sum hash.Hash
}

func newHand(ctx context.Context) *hand {
	return &hand{ctx: ctx, sum: sha256.New()}
}

// mostAtOnce is how much of a file is read at once.
const mostAtOnce = 256 << 10

// room is where to read a file of that size, and where it is seen to end. Most work reads
// little, or nothing at all.
func (h *hand) room(size int64) []byte {
	if want := int(min(size+1, mostAtOnce)); len(h.buf) < want {
		h.buf = make([]byte, min(max(want, 2*len(h.buf), 4<<10), mostAtOnce))
	}
	return h.buf
}

// crewSize keeps the processors busy while some wait for the disk.
func crewSize() int { return min(max(4, 2*runtime.GOMAXPROCS(0)), 16) }

// together runs a task and all that it adds, and returns when the crew has ended.
func together(ctx context.Context, first func(*crew) task) error {
	c := &crew{}
	c.ready.L = &c.mu
	c.tasks = []task{first(c)}
	var all sync.WaitGroup
	for range crewSize() {
		all.Go(func() {
			h := newHand(ctx)
			for t := c.next(ctx); t != nil; t = c.next(ctx) {
				c.done(t(h))
			}
		})
	}
	all.Wait()
	return c.err
}

func (c *crew) add(t task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks = append(c.tasks, t)
	c.ready.Signal()
}

// next waits for a task; nil: there will be none.
func (c *crew) next(ctx context.Context) task {
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

func (c *crew) done(err error) {
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
