package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
)

// checked returns the results of the tests and the CI checks of a batch.
func (s *scene) checked(unit, batch string) (tests, ci *flow.Checked) {
	s.t.Helper()
	u, err := s.opt.Progress.Unit(s.t.Context(), unit)
	must(s.t, err)
	for i := range u.Batches {
		if b := &u.Batches[i]; b.ID == batch {
			return b.Tested, b.CI
		}
	}
	s.t.Fatalf("there is no batch %s/%s", unit, batch)
	return nil, nil
}

// foretold returns the warning before a run about untested work.
func (s *scene) foretold() string {
	s.t.Helper()
	p, err := run.New(s.opt)
	must(s.t, err, p.Survey(s.t.Context()))
	text, err := p.Untested()
	must(s.t, err)
	return text
}

// If no tests are configured, work lands untested. It never counts as passed: not before the run,
// not in the prompt of the verifying agent, and not in the documents.
func TestUntestedIsNotPassed(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.tasks(one)
	s.play(strings.Replace(oneScript, "'^# verify .*one'", `'(?s)^# verify .*one.*The phase test ran no command'`, 1))
	if text := s.foretold(); text != "" {
		t.Errorf("with tests: %q", text)
	}
	s.opt.Checks = run.Checks{}
	if text := s.foretold(); !strings.Contains(text, "nothing will be tested") {
		t.Errorf("before the run: %q", text)
	}
	out := s.run("all")
	if b := s.batch(out, tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("%+v", b)
	}
	s.holds("app/models/one.rb", "one\n")
	tests, ci := s.checked(tasks, "one")
	for _, c := range []*flow.Checked{tests, ci} {
		if c.Passed || c.State != flow.CheckSkipped || c.Skipped == "" {
			t.Errorf("%+v", c)
		}
	}
	found, err := filepath.Glob(filepath.Join(s.root, ".pipeline", "*", "batches", "*", "*_results.json"))
	must(t, err)
	for _, file := range found {
		text, err := os.ReadFile(file)
		must(t, err)
		if strings.Contains(string(text), `"passed": true`) || !strings.Contains(string(text), `"state": "skipped"`) {
			t.Errorf("%s", text)
		}
	}
	if len(found) != 2 {
		t.Errorf("results: %v", found)
	}
}

// A batch whose test file is missing is tested by the whole suite, if there is one.
func TestMissingTestFile(t *testing.T) {
	for suite, want := range map[string]flow.CheckState{"": flow.CheckSkipped, "sh bin/ci": flow.CheckPassed} {
		s := newScene(t, "memory", "tasks")
		s.tasks(one)
		s.play(oneScript)
		s.opt.Checks = run.Checks{Test: "false {path}", TestPath: "test/{controller}_test.rb", Suite: suite}
		if text := s.foretold(); (text == "") != (want == flow.CheckPassed) {
			t.Errorf("suite %q: before the run: %q", suite, text)
		}
		s.run("all")
		tests, _ := s.checked(tasks, "one")
		if tests == nil || tests.State != want || (want == flow.CheckPassed) != (len(tests.Runs) == 1) {
			t.Errorf("suite %q: %+v", suite, tests)
		}
	}
}
