package lockkeeper_test

import (
	"testing"

	lk "lockkeeper"
)

// An item that runs comes before each queued one, whatever their phases, turns and ages are.
//
// shows: CF-13
func TestRunningItemsComeFirst(t *testing.T) {
	for _, escalated := range []bool{false, true} {
		running := lk.Item{Status: lk.ItemDispatched, Rank: 9, Turn: 9, Seq: 9}
		queued := lk.Item{Status: lk.ItemQueued, Escalated: escalated}
		if lk.CompareItems(&running, &queued) >= 0 || lk.CompareItems(&queued, &running) <= 0 {
			t.Errorf("a queued item comes before a running one; it is escalated: %v", escalated)
		}
	}
}
