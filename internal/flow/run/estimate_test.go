package run_test

import (
	"math"
	"strings"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
)

// rest returns the estimated remaining cost of a run, rounded to cents.
func rest(out *run.Outcome) float64 { return math.Round(out.State.Rest*100) / 100 }

// pricedScript returns threeScript with a cost for verifications, too.
func pricedScript(apply float64) string {
	return strings.Replace(threeScript(apply), "issues: []}}", "issues: []}, cost_usd: 0.1}", 1)
}

// The remaining cost of a plan is the sum over its open tasks, each from its current phase.
func TestEstimateOfTasks(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.opt.Limits.Agents = 1
	s.tasks(three)
	s.play(pricedScript(0.3))
	s.opt.Budget.USD = 0.7 // pays for one task and the first call of another
	out := s.run("all")
	if out.Budget == "" {
		t.Fatalf("%+v", out)
	}
	spent := out.State.Spent.USD()
	left := rest(out)
	if left == 0 {
		t.Errorf("nothing is left: %+v", out.State)
	}
	s.opt.Budget.USD = 0
	out = s.run("all")
	if out.Complete != 1 || math.Abs(out.State.Spent.USD()-spent-left) > 0.001 {
		t.Errorf("$%.2f was left, and $%.2f of $%.2f were spent then", left, out.State.Spent.USD()-spent, out.State.Spent.USD())
	}
	if rest(out) != 0 {
		t.Errorf("$%.2f is left of a plan that is complete", rest(out))
	}
}

// A failed unit resumes after its last document, so the estimate excludes the phases already paid
// for.
func TestEstimateAfterAFailure(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.opt.Limits.Fixes = 0
	s.tasks(strings.Replace(three, "[app/models/two.rb]", "[app/models/two.rb], tests: [\"false\"]", 1))
	s.play(pricedScript(0.3))
	out := s.run("all")
	if b := s.batch(out, tasks, "two"); b.Status != flow.Failed || rest(out) != 0.1 {
		t.Errorf("$%.2f is left for %+v", rest(out), b)
	}
}

// Each screen without an analysis adds the cost of one analysis. A merge counts as one, too.
func TestEstimateOfScreens(t *testing.T) {
	s := newScene(t, "memory", "screens")
	out := s.conduct(request{Only: []string{"blog/posts/Post List"}})
	each := out.State.Spent.USD()
	p, err := run.New(s.opt)
	must(t, err)
	must(t, p.Survey(t.Context()))
	out, err = p.Outcome(t.Context())
	must(t, err)
	if want := math.Round(8*each*100) / 100; each == 0 || rest(out) != want {
		t.Errorf("$%.2f is left, want $%.2f for eight screens", rest(out), want)
	}
}
