package run

import (
	"context"
	"sync"
	"time"
)

// A timed is an execution that measures what an item takes outside of its slots: preparing its
// workspaces, collecting, storing and landing. Waits for slots and for people, and the time in slots,
// are no part of it.
type timed struct {
	execution
	began time.Time

	mu      sync.Mutex
	left    time.Time     // since when the time does not count; zero: it counts
	without time.Duration // what did not count
	call    *asked        // the first call of the item that ended
}

func startTiming(t execution) *timed { return &timed{execution: t, began: time.Now()} }

// Phase implements execution.
func (t *timed) Phase(ctx context.Context, phase string, pools ...string) error {
	t.leave()
	return t.execution.Phase(ctx, phase, pools...)
}

// ReturnSlots implements execution.
func (t *timed) ReturnSlots(ctx context.Context) error {
	t.enter()
	return t.execution.ReturnSlots(ctx)
}

// leave stops the clock until enter.
func (t *timed) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left.IsZero() {
		t.left = time.Now()
	}
}

func (t *timed) enter() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.left.IsZero() {
		t.without += time.Since(t.left)
		t.left = time.Time{}
	}
}

// answered records a call of the item that ended.
func (t *timed) answered(a *asked) {
	if t.call == nil {
		t.call = a
	}
}

// record adds the time to the record of the first call. An item without a call has no record.
func (t *timed) record() error {
	t.enter()
	if t.call == nil {
		return nil
	}
	t.call.rec.Handling = time.Since(t.began) - t.without
	return t.call.trace.write(t.call.rec)
}
