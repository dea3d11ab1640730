package view_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/flow/simulate"
	"lockkeeper/internal/project/projecttest"
)

// timedTasks is a codebase with a plan of twelve tasks, whose agents take half a second.
type timedTasks struct {
	*scene
	plan, script string
}

const timedSlots = 4

func newTimedTasks(t *testing.T) *timedTasks {
	p := projecttest.Sample(t, projecttest.Options{Run: "  baseline: off\n"})
	script, _ := projecttest.Lookup(p.Env)(scripted.ScriptVariable)
	s := &timedTasks{scene: sceneAt(t, p), plan: filepath.Join(p.Root, "twelve.yaml"), script: script}
	s.play("")
	return s
}

// play writes the plan, in which the prompts have the given word, and the script of the agents.
func (s *timedTasks) play(word string) {
	s.t.Helper()
	var plan strings.Builder
	plan.WriteString("tests: [sleep 0.2]\ntasks:\n")
	for i := range 12 {
		fmt.Fprintf(&plan, "  - {name: t%d, prompt: Do it%s., writes: [app/models/t%d.rb]}\n", i, word, i)
	}
	script := `calls:
- match: '^# task \S*t(\d+)'
  steps: [{sleep: 500ms}, {write: {path: 'app/models/t$1.rb', content: "# ` + word + `\n"}}]
  result: {structured: {summary: done}}
- match: '^# verify '
  result: {structured: {verdict: pass, report: fine, issues: []}}
`
	must(s.t, os.WriteFile(s.plan, []byte(plan.String()), 0o600), os.WriteFile(s.script, []byte(script), 0o600))
}

// conduct runs the plan and returns the stored prediction at its start and at its end.
func (s *timedTasks) conduct(stop <-chan struct{}, tell func(run.News)) (before, after *conduct.Prediction) {
	s.t.Helper()
	ctx := s.t.Context()
	c, err := conduct.New(ctx, s.app, conduct.Options{Plan: s.plan, Slots: timedSlots, By: ada, Env: s.env, Tell: tell})
	must(s.t, err)
	active, err := c.Start(ctx)
	must(s.t, err)
	before = s.stored()
	_, err = active.Run(ctx, stop)
	must(s.t, err, active.Close(ctx))
	return before, s.stored()
}

func (s *timedTasks) stored() *conduct.Prediction {
	s.t.Helper()
	r, err := conduct.CurrentRun(s.app)
	must(s.t, err)
	return r.Prediction
}

// simulated returns what lockkeeper simulate says about the plan.
func (s *timedTasks) simulated() float64 {
	s.t.Helper()
	times, err := conduct.TaskTimes(s.root, s.app.Config)
	must(s.t, err)
	plan, err := simulate.ReadPlan(s.plan, s.plan, times)
	must(s.t, err)
	rep, err := simulate.Run(s.t.Context(), plan, simulate.Options{Slots: timedSlots, Tests: s.app.Config.MaxTestConcurrency, Scheduler: conduct.SchedulerOptions(s.app.Config)})
	must(s.t, err)
	return time.Duration(rep.Prediction.Finish).Seconds()
}

// A run predicts how long it takes. The first one assumes, and says so. From its records, the time of
// the same plan is predicted well, by a run and by a simulation alike.
func TestRunPredictsItsTime(t *testing.T) {
	s := newTimedTasks(t)
	assumed := s.simulated()
	before, first := s.conduct(nil, nil)
	if before.Seconds != 900 || assumed != 900 || before.Took != 0 || before.Calls != 0 || !strings.Contains(before.String(), "no calls recorded yet: 5 minutes assumed for each") {
		t.Errorf("nothing is recorded: %+v: %s; simulate says %.1f s", before, before, assumed)
	}
	predicted := s.simulated()
	for last, word := first, " again"; ; word += " and again" { // what else the machine does may slow one run, but not each
		off := last.Took/predicted - 1
		if math.Abs(off) <= 0.25 {
			break
		}
		if word == " again and again and again" {
			t.Fatalf("the run took %.2f s; from its records, %.2f s are predicted", last.Took, predicted)
		}
		s.play(word)
		_, last = s.conduct(nil, nil)
		predicted = s.simulated()
	}
	s.play(" at last")
	before, second := s.conduct(nil, nil)
	if math.Abs(before.Seconds-predicted) > 0.001 || before.Calls == 0 {
		t.Errorf("the run predicts %+v, simulate %.3f s", before, predicted)
	}
	if strings.Contains(second.String(), ";") || !strings.Contains(second.String(), "predicted ") || !strings.Contains(second.String(), " s, took ") {
		t.Errorf("it says %q", second)
	}
	t.Logf("%s; then %s", first, second)
	v, err := s.look.Run(t.Context(), "tasks")
	must(t, err)
	if got := v.Report.Run.Prediction; got == nil || *got != *second {
		t.Errorf("the run page has %+v, want %+v", got, second)
	}
}

// A run that is stopped has no time to compare. When it resumes, it predicts the rest.
func TestStoppedRunPredictsAgain(t *testing.T) {
	s := newTimedTasks(t)
	s.conduct(nil, nil)
	s.play(" again")
	stop, landed := make(chan struct{}), 0
	whole, stopped := s.conduct(stop, func(n run.News) {
		if n.Kind != run.NewsLanded {
			return
		}
		if landed++; landed == 3 {
			close(stop)
		}
	})
	if stopped.Took != 0 || stopped.Seconds != whole.Seconds {
		t.Errorf("a stopped run: %+v", stopped)
	}
	rest, done := s.conduct(nil, nil)
	if rest.Seconds >= whole.Seconds || done.Took == 0 || !rest.At.After(whole.At) {
		t.Errorf("all: %+v, the rest: %+v, then %+v", whole, rest, done)
	}
}
