package run_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// After a run has said that nothing new starts, no agent starts: neither one whose workspace was
// being made, nor the one of a batch's next phase. A second run completes the work.
//
// shows: SW-53
func TestStopStartsNoAgent(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.opt.Limits.Agents = 3
	var plan strings.Builder
	for i := range 6 {
		fmt.Fprintf(&plan, "  - {name: t%d, prompt: Change app/models/t%d.rb., writes: [app/models/t%d.rb]}\n", i, i, i)
		write(t, s.root, fmt.Sprintf("app/models/t%d.rb", i), "old\n")
	}
	s.tasks("tasks:\n" + plan.String())
	s.command(`echo new > $(echo "$prompt" | grep -o "app/models/t[0-9].rb" | head -n 1)`)
	stop := make(chan struct{})
	var once sync.Once
	told := s.opt.Tell
	s.opt.Tell = func(n run.News) {
		told(n)
		if n.Kind == run.NewsStarted {
			once.Do(func() { close(stop) })
		}
	}
	auto, err := progress.ParsePolicy("all")
	must(t, err)
	s.opt.Auto = &auto
	p, err := run.New(s.opt)
	must(t, err)
	out, err := p.Run(t.Context(), stop)
	must(t, err)
	stopped := false
	for _, n := range s.told {
		switch {
		case n.Kind == run.NewsRun && strings.Contains(n.Text, "nothing new starts"):
			stopped = true
		case n.Kind == run.NewsStarted && stopped:
			t.Errorf("after that an agent started: %+v", n)
		case n.Kind == run.NewsFailed:
			t.Errorf("%+v", n)
		}
	}
	if !stopped || !out.Stopped {
		t.Errorf("said %v, stopped %v, complete %d", stopped, out.Stopped, out.Complete)
	}
	s.opt.Tell = told
	out = s.run("all")
	for i := range 6 {
		if b := s.batch(out, tasks, fmt.Sprintf("t%d", i)); b.Status != flow.Complete {
			t.Errorf("%+v", b)
		}
	}
}
