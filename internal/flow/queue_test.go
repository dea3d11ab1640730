package flow

import (
	"fmt"
	"testing"
)

// Work near its end starts first, and no phase has two ranks.
func TestQueueOrder(t *testing.T) {
	const want = "[[verify question] [test ci fix ci_fix] [apply merge job] [batch_plan] [research extract synthesize audit] [analyze]]"
	if got := fmt.Sprint(QueueOrder()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
