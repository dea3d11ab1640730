package run_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// resume continues a run as a person would.
func (s *scene) resume(retry bool) *run.Outcome {
	s.t.Helper()
	auto, err := progress.ParsePolicy("all")
	must(s.t, err)
	return s.conduct(request{Auto: &auto, Retry: retry})
}

// checkedOne is a task whose test reads a file that it declares.
const checkedOne = `tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb], reads: [app/models/word.rb], tests: ["grep -q $(cat app/models/word.rb) app/models/one.rb"]}]` + "\n"

// Test results are valid only for the tested state. While a person reviewed a diff, a dependency
// changed. The batch is tested again before it lands, fixed, and reviewed again.
//
// shows: CF-46 PL-28
func TestReviewedAndOvertaken(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.opt.Review = "all"
	write(t, s.root, "app/models/word.rb", "one\n")
	s.tasks(checkedOne)
	s.play(oneScript)
	if out := s.resume(false); len(out.Waiting) != 1 {
		t.Fatalf("%+v", out)
	}
	must(t, s.opt.Progress.ApproveReview(t.Context(), tasks, "one", "ada"))
	write(t, s.root, "app/models/word.rb", "fixed\n")
	out := s.resume(false)
	s.holds("app/models/one.rb", "")
	if len(out.Waiting) != 1 || out.Waiting[0].Ref.Kind != progress.ReviewKind {
		t.Fatalf("the fix landed without a review: %+v", out)
	}
	must(t, s.opt.Progress.ApproveReview(t.Context(), tasks, "one", "ada"))
	if b := s.batch(s.resume(false), tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("%+v", b)
	}
	s.holds("app/models/one.rb", "fixed\n")
	if again := s.news(run.NewsAgain); len(again) != 2 || !strings.Contains(again[0].Text, "earlier workspace") {
		t.Errorf("tested again: %+v", again)
	}
}

// Reviewed batches are tested again before they land, in the only test slot. Another batch may
// hold the lander and need that slot, so a batch that waits to land must not hold it.
//
// shows: PL-28 CF-46
func TestWaitingToLandHoldsNoSlot(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.opt.Review, s.opt.Checks.Commands = "all", nil
	limits := sched.DefaultLimits()
	limits.Tests = 1
	var err error
	s.opt.Queue, err = sched.New(s.opt.Store, s.opt.Locks, sched.Options{Phases: flow.QueueOrder(), Limits: limits, MaxAttempts: 1000})
	must(t, err)
	tested := filepath.Join(filepath.Dir(s.script), "tested") // confined tests can write there
	s.tasks(fmt.Sprintf(`
tasks:
  - {name: one, prompt: Write it., writes: [app/models/one.rb], tests: ["echo one > %[1]s"]}
  - {name: two, prompt: Write it., writes: [app/models/two.rb], tests: ["echo two > %[1]s"]}
`, tested))
	s.play(`
- {match: '^# task .*one', steps: [{write: {path: app/models/one.rb, content: "new\n"}}], result: {structured: {summary: done}}}
- {match: '^# task .*two', steps: [{write: {path: app/models/two.rb, content: "new\n"}}], result: {structured: {summary: done}}}
- match: '^# verify '
  result: {structured: {verdict: pass, report: fine, issues: []}}
`)
	if out := s.resume(false); len(out.Waiting) != 2 {
		t.Fatalf("%+v", out)
	}
	must(t, s.opt.Progress.ApproveReview(t.Context(), tasks, "one", "ada"), s.opt.Progress.ApproveReview(t.Context(), tasks, "two", "ada"))
	must(t, os.Remove(tested), syscall.Mkfifo(tested, 0o600))
	tests, err := os.OpenFile(tested, os.O_RDWR, 0)
	must(t, err)
	defer tests.Close()
	must(t, tests.SetReadDeadline(time.Now().Add(hung)))
	auto, err := progress.ParsePolicy("all")
	must(t, err)
	s.opt.Auto = &auto
	p, err := run.New(s.opt)
	must(t, err)
	mayLand := p.KeepStill()
	ended := make(chan error, 1)
	go func() {
		_, err := p.Run(t.Context(), nil)
		ended <- err
	}()
	// If the waiting batch kept its slot, the other one could not be tested.
	seen := map[string]bool{}
	for lines := bufio.NewScanner(tests); len(seen) < 2; seen[lines.Text()] = true {
		if !lines.Scan() {
			t.Fatalf("tested: %v, %v", seen, lines.Err())
		}
	}
	mayLand()
	must(t, <-ended)
	s.holds("app/models/one.rb", "new\n")
	s.holds("app/models/two.rb", "new\n")
}

// A batch that failed its tests does not land when it is retried, neither unchanged nor empty.
//
// shows: GP-26 PL-28
func TestRetryOfFailedTestsDoesNotLand(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.opt.Limits.Fixes = 0
	write(t, s.root, "app/models/word.rb", "never\n")
	s.tasks(checkedOne)
	s.play(oneScript)
	for range 2 {
		if b := s.batch(s.resume(true), tasks, "one"); b.Status != flow.Failed {
			t.Fatalf("%+v", b)
		}
		s.holds("app/models/one.rb", "")
	}
	write(t, s.root, "app/models/word.rb", "one\n")
	if b := s.batch(s.resume(true), tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("%+v", b)
	}
	s.holds("app/models/one.rb", "one\n")
	if calls := s.callsFor("apply"); calls != 1 {
		t.Errorf("%d calls for one task", calls)
	}
}

// If an agent fails, its changes are kept.
//
// shows: SW-71 PL-80
func TestFailedWorkIsKept(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.tasks(one)
	s.play(`
- match: '^# task .*one'
  steps: [{write: {path: app/models/one.rb, content: "half\n"}}, {exit: 3}]
`)
	if b := s.batch(s.resume(false), tasks, "one"); b.Status != flow.Failed {
		t.Fatalf("%+v", b)
	}
	s.holds("app/models/one.rb", "")
	s.shelved("app/models/one.rb")
}

// An item of an outdated plan does nothing. The batch in its present form has its own item.
//
// shows: GP-19
func TestPlanChangedAfterFailure(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.tasks(one)
	s.play(`
- match: '^# task .*one'
  times: 1
  steps: [{exit: 3}]
- match: '^# task .*one'
  steps: [{write: {path: app/models/one.rb, content: "one\n"}}, {write: {path: app/models/two.rb, content: "two\n"}}]
  result: {structured: {summary: both}}
` + oneScript)
	if b := s.batch(s.resume(false), tasks, "one"); b.Status != flow.Failed {
		t.Fatalf("%+v", b)
	}
	s.tasks(strings.Replace(one, "[app/models/one.rb]", "[app/models/one.rb, app/models/two.rb]", 1))
	out := s.resume(true)
	if b := s.batch(out, tasks, "one"); b.Status != flow.Complete || out.Failed != 0 {
		t.Fatalf("%+v", out)
	}
	s.holds("app/models/two.rb", "two\n")
	if gaps := s.news(run.NewsGap); len(gaps) != 0 {
		t.Errorf("%+v", gaps)
	}
}

// A batch failed its tests, and another landing changed its file before the retry. The agent that
// applies it again is called with an agent slot, and the test slot is free.
func TestRetryHoldsNoTestSlot(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.opt.Limits.Fixes = 0
	write(t, s.root, "app/models/one.rb", "before\n")
	write(t, s.root, "app/models/word.rb", "never\n")
	s.tasks(checkedOne)
	s.play(oneScript)
	if b := s.batch(s.resume(false), tasks, "one"); b.Status != flow.Failed {
		t.Fatalf("%+v", b)
	}
	write(t, s.root, "app/models/one.rb", "by another\n")
	write(t, s.root, "app/models/word.rb", "one\n")
	taken := map[string]int{}
	tell := s.opt.Tell
	s.opt.Tell = func(n run.News) {
		tell(n)
		if n.Kind == run.NewsStarted && n.Phase == "apply" {
			must(t, s.opt.Store.View(t.Context(), func(r store.Reader) error {
				for _, pool := range []string{sched.PoolAgent, sched.PoolTest} {
					n, err := r.SlotsTaken(pool)
					must(t, err)
					taken[pool] = n
				}
				return nil
			}))
		}
	}
	if b := s.batch(s.resume(true), tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("%+v", b)
	}
	s.holds("app/models/one.rb", "one\n")
	if taken[sched.PoolAgent] != 1 || taken[sched.PoolTest] != 0 {
		t.Errorf("slots taken during the agent call: %v", taken)
	}
}

// The news and the prompt of the verifying agent say that a batch has no tests.
func TestUntested(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.opt.Checks = run.Checks{}
	s.tasks(`
tasks:
  - {name: one, prompt: Do it., writes: [app/models/one.rb]}
`)
	s.play(`
- {match: '^# task .*one', steps: [{write: {path: app/models/one.rb, content: "new\n"}}], result: {structured: {summary: done}}}
- match: '(?s)^# verify .*The phase test ran no command: .*The phase ci ran no command: '
  result: {structured: {verdict: pass, report: fine, issues: []}}
`)
	out := s.resume(false)
	if one := s.batch(out, tasks, "one"); one.Status != flow.Complete {
		t.Errorf("%+v", one)
	}
	skipped := s.news(run.NewsSkipped)
	if len(skipped) != 2 || skipped[0].Phase != "test" || skipped[1].Phase != "ci" || !strings.Contains(skipped[0].Text, "nothing was tested") {
		t.Errorf("skipped: %+v", skipped)
	}
	if landed := s.news(run.NewsLanded); len(landed) != 1 || !strings.Contains(landed[0].Text, "not tested") {
		t.Errorf("landed: %+v", landed)
	}
}

// A batch without changes ends as no_change, not as a landing of 0 files.
func TestNoChange(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.tasks(`
tasks:
  - {name: one, prompt: Do it., writes: [app/models/one.rb]}
  - {name: two, prompt: Do it., writes: [app/models/two.rb], after: [one]}
`)
	s.play(`
- {match: '^# task .*one', result: {structured: {summary: nothing to do}}}
- {match: '^# task .*two', steps: [{write: {path: app/models/two.rb, content: "new\n"}}], result: {structured: {summary: done}}}
- match: '^# verify '
  result: {structured: {verdict: pass, report: fine, issues: []}}
`)
	out := s.resume(false)
	if one, two := s.batch(out, tasks, "one"), s.batch(out, tasks, "two"); one.Status != flow.NoChange || two.Status != flow.Complete || out.Complete != 1 || out.Failed != 0 {
		t.Errorf("%+v", out.State.Units)
	}
	if landed, none := s.news(run.NewsLanded), s.news(run.NewsNoChange); len(landed) != 1 || landed[0].Batch != "two" || len(none) != 1 || none[0].Batch != "one" {
		t.Errorf("landed %+v, no change %+v", landed, none)
	}
	if again := s.resume(true); s.batch(again, tasks, "one").Status != flow.NoChange || s.callsFor("apply") != 2 {
		t.Errorf("%+v after %d calls", again.State.Units, s.callsFor("apply"))
	}
}
