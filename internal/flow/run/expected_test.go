package run_test

import (
	"slices"
	"testing"

	"lockkeeper/internal/flow/run"
	"lockkeeper/sched"
)

// The task with the longest chain of work behind it starts first: what waits for it, and what
// writes the same file.
//
// shows: SW-31
func TestLongestChainStartsFirst(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	one := sched.DefaultLimits()
	one.Agents = 1
	s.slots(one)
	s.tasks(`tasks:
  - {name: alone, prompt: Do it., writes: [app/models/a.rb]}
  - {name: shared, prompt: Do it., writes: [app/models/s.rb]}
  - {name: first, prompt: Do it., writes: [app/models/f.rb]}
  - {name: second, prompt: Do it., writes: [app/models/s.rb], after: [first]}
  - {name: third, prompt: Do it., writes: [app/models/t.rb], after: [second]}
`)
	s.command("true")
	s.run("all")
	var order []string
	for _, n := range s.news(run.NewsStarted) {
		if n.Phase == "apply" {
			order = append(order, n.Batch)
		}
	}
	if len(order) != 5 || slices.Index(order, "alone") < slices.Index(order, "first") || slices.Index(order, "alone") < slices.Index(order, "shared") {
		t.Errorf("started in the order %v", order)
	}
}
