package run_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
)

// two has two tasks, one after the other.
const twoTasks = `
tasks:
  - {name: one, prompt: Do it., writes: [app/models/one.rb]}
  - {name: next, prompt: Do it too., writes: [app/models/next.rb], after: [one]}
`

const twoScript = `
- match: '^# task .*next'
  steps: [{write: {path: app/models/next.rb, content: "next\n"}}]
  result: {structured: {summary: made next}}
` + oneScript

// counting returns a test command that counts its runs, then prints lines and fails.
func (s *scene) counting(lines ...string) (command string, runs func() int) {
	s.t.Helper()
	file := filepath.Join(filepath.Dir(s.script), "runs")
	command = "echo run >> " + file
	for _, line := range lines {
		command += "; " + line
	}
	return command, func() int {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			return 0
		}
		must(s.t, err)
		return strings.Count(string(text), "run\n")
	}
}

// goFails prints that a test of Go failed.
func goFails(test string) string {
	return `printf -- '--- FAIL: ` + test + ` (0.01s)\nFAIL\nFAIL\tm\t0.01s\n'`
}

// atStart returns the scene of a run of tasks that keeps its baseline.
func atStart(t *testing.T, plan, script string) *scene {
	s := newScene(t, "memory", "tasks")
	s.tasks(plan)
	s.play(script)
	s.opt.Checks, s.opt.Baseline = run.Checks{}, run.BaselineAsk
	s.opt.BaselineFile = filepath.Join(s.root, ".lockkeeper", "baseline.json")
	return s
}

func (s *scene) said(kind run.NewsKind, text string) bool {
	for _, n := range s.news(kind) {
		if strings.Contains(n.Text, text) {
			return true
		}
	}
	return false
}

// fixes counts the calls of agents that fix a failure.
func (s *scene) fixes() int {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.opt.Calls, "*fix*"))
	must(s.t, err)
	red := 0
	for _, n := range s.news(run.NewsStarted) {
		if strings.HasPrefix(n.Text, "fix ") {
			red++
		}
	}
	return max(len(found), red)
}

// A batch whose tests fail as they did on the unchanged tree is not fixed. It lands, and its result
// is neither passed nor failed.
//
// shows: PL-28
func TestFailsAsBefore(t *testing.T) {
	s := atStart(t, twoTasks, twoScript)
	var runs func() int
	s.opt.Checks.Test, runs = s.counting(goFails("TestOld"), "exit 1")
	out := s.run("all")
	if out.Complete != 1 || s.fixes() != 0 {
		t.Fatalf("%d fixes; %+v", s.fixes(), out.State.Units)
	}
	if b := out.Baseline; b == nil || b.Tests.Passed || b.What() != "m.TestOld" {
		t.Errorf("%+v", b)
	}
	for _, id := range []string{"one", "next"} {
		tests, _ := s.checked(tasks, id)
		if tests.State != flow.CheckAsBefore || tests.Passed || !tests.Cleared() || tests.AsBefore != "m.TestOld" || !tests.Runs[0].AsBefore {
			t.Errorf("%s: %+v", id, tests)
		}
	}
	s.holds("app/models/next.rb", "next\n")
	if !s.said(run.NewsBaseline, "m.TestOld") || !s.said(run.NewsAsBefore, "m.TestOld") || !s.said(run.NewsLanded, "tests fail as before the run") {
		t.Errorf("%+v", s.told)
	}
	if runs() != 3 {
		t.Errorf("the tests ran %d times", runs())
	}
}

// An agent fixes what did not fail before, and only that.
func TestOnlyNewFailuresAreFixed(t *testing.T) {
	s := atStart(t, one, oneScript)
	s.opt.Checks.Test = "if grep -qs one app/models/one.rb; then " + goFails("TestNew") + "; fi; " + goFails("TestOld") + "; exit 1"
	s.run("all")
	tests, _ := s.checked(tasks, "one")
	if s.fixes() != 1 || tests.Fixes != 1 || tests.State != flow.CheckAsBefore || tests.Runs[0].AsBefore {
		t.Errorf("%d fixes: %+v", s.fixes(), tests)
	}
	s.holds("app/models/one.rb", "fixed\n")
}

// What a task demands must pass, also if it failed before.
func TestOwnTestsOfATask(t *testing.T) {
	s := atStart(t, `tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb], tests: ["grep fixed app/models/one.rb"]}]`, oneScript)
	s.opt.Checks.Test = "grep fixed app/models/one.rb"
	out := s.run("all")
	tests, _ := s.checked(tasks, "one")
	if out.Complete != 1 || tests.State != flow.CheckPassed || tests.Fixes != 1 {
		t.Errorf("%+v", tests)
	}
}

// The tests run once for a tree. A run that is resumed on a changed tree keeps the baseline of its
// start.
func TestBaselineIsKept(t *testing.T) {
	s := atStart(t, one, oneScript)
	command, runs := s.counting("true")
	s.opt.Checks.Test = command
	s.opt.Review = "all" // nothing lands
	s.run("none")
	if runs() != 2 {
		t.Fatalf("the tests ran %d times: before the run and for the batch", runs())
	}
	if !s.said(run.NewsRun, "the tests pass here") {
		t.Errorf("%+v", s.told)
	}
	s.tasks(twoTasks) // more work for the same run
	s.play(twoScript)
	must(t, os.WriteFile(filepath.Join(s.root, "app/models/more.rb"), nil, 0o644))
	s.run("none")
	if runs() != 2 {
		t.Errorf("a resumed run: the tests ran %d times", runs())
	}
}

// Another run on the same tree uses the result. With another tree, another command or another
// sandbox the tests run again.
func TestBaselineOfATree(t *testing.T) {
	s := atStart(t, one, oneScript)
	command, runs := s.counting("true")
	s.opt.Checks.Test = command
	trial := func() int {
		before := runs()
		p, err := run.New(s.opt)
		must(t, err, p.Survey(t.Context()))
		must(t, p.TakeBaseline(t.Context()))
		if b := p.Baseline(); b == nil || !b.Tests.Passed || b.Run != s.opt.Run {
			t.Errorf("%+v", b)
		}
		return runs() - before
	}
	if n := trial(); n != 1 {
		t.Errorf("the first run: %d", n)
	}
	s.opt.Run = "r2"
	if n := trial(); n != 0 {
		t.Errorf("another run: %d", n)
	}
	s.opt.Run = "r3"
	file := filepath.Join(s.root, "app/models/application_record.rb")
	must(t, os.WriteFile(file, []byte("# changed\n"), 0o644))
	if n := trial(); n != 1 {
		t.Errorf("another tree: %d", n)
	}
	s.opt.Run = "r4"
	must(t, os.Chtimes(file, time.Time{}, time.Now().Add(time.Second)))
	must(t, os.Mkdir(filepath.Join(s.root, ".pipeline"), 0o755), os.WriteFile(filepath.Join(s.root, ".pipeline", "x"), nil, 0o644))
	trial()
	s.opt.Run, s.opt.Checks.Test = "r5", command+" # again"
	if n := trial(); n != 1 {
		t.Errorf("another command: %d", n)
	}
}

// A person, the setting, or a missing program stops the run before its first batch. Nothing is paid.
func TestStopAtAFailingBaseline(t *testing.T) {
	for name, set := range map[string]func(*run.Options, *int){
		"setting": func(o *run.Options, asked *int) { o.Baseline, *asked = run.BaselineStop, 1 },
		"missing": func(o *run.Options, asked *int) { o.Checks.Test, *asked = "no-such-program", 1 },
		"person": func(o *run.Options, asked *int) {
			o.AskBaseline = func(_ context.Context, b *run.Baseline) (bool, error) {
				*asked++
				return b.Tests.Passed, nil
			}
		},
	} {
		s := atStart(t, one, oneScript)
		s.opt.Checks.Test = "echo broken; false"
		asked := 0
		set(&s.opt, &asked)
		out := s.run("all")
		if !out.Stopped || out.Complete != 0 || out.State.Spent.Calls != 0 || asked != 1 || out.Baseline == nil || !out.Baseline.Stopped {
			t.Errorf("%s: %+v, asked %d times", name, out, asked)
		}
		s.holds("app/models/one.rb", "")
		s.opt.AskBaseline, s.opt.Baseline = func(context.Context, *run.Baseline) (bool, error) { return true, nil }, run.BaselineAsk
		if out := s.run("all"); out.Complete != 1 || out.Stopped {
			t.Errorf("%s, then going on: %+v", name, out)
		}
		s.opt.AskBaseline = func(context.Context, *run.Baseline) (bool, error) { t.Error("asked again"); return false, nil }
		s.tasks(twoTasks)
		s.play(twoScript)
		s.run("all")
	}
}
