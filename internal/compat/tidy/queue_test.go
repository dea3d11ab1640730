package tidy

import (
	"testing"
	"time"

	"lockkeeper/internal/compat/lease"
)

// After a run was killed while it changed the queue, the next run waits by default until
// the queue is free. One second is for rounding in lease files, one for the waiter's pause.
//
// shows: LE-25
func TestQueueOfAKilledRunIsWaitedFor(t *testing.T) {
	if held := queueTTL + queueGrace + 2*time.Second; held >= lease.DefaultTimeout {
		t.Errorf("held for up to %s, but the default timeout is %s", held, lease.DefaultTimeout)
	}
}
