package tidy

import (
	"testing"
	"time"

	"lockkeeper/lease"
)

// A run that was killed while it changed the queue does not make the next one fail: by
// default that one waits until the queue is free again. A second is what lease files
// round up to, another what a waiter sleeps for.
//
// shows: LE-6
func TestQueueOfAKilledRunIsWaitedFor(t *testing.T) {
	if held := queueTTL + queueGrace + 2*time.Second; held >= lease.DefaultTimeout {
		t.Errorf("it is held for up to %s, and waited for %s", held, lease.DefaultTimeout)
	}
}
