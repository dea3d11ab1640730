package run_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// tidying returns a flow that only this test uses. An agent surveys each controller, another
// plans without a decision by a person, and one check with its own commands ends each batch.
func tidying() flow.Flow {
	return flow.Flow{
		Name: "tidying", Source: flow.Codebase, Counted: "unit", PlannedBy: "batch_plan", UnitsOwnFiles: true,
		Phases: []flow.Phase{
			{Name: "discover", Step: flow.Discovering, Status: "discovering", Unit: flow.Whole, Executor: flow.BuiltIn},
			{Name: "analyze", Step: flow.Asking, Status: "surveying", Unit: flow.Controller, Executor: flow.Agent, Output: "survey.json", Prompt: "analyze", Answer: "summary"},
			{Name: "batch_plan", Step: flow.Asking, Status: "planning", Unit: flow.Controller, Executor: flow.Agent, Output: flow.BatchesFile, Prompt: "batch_plan", Answer: "batches"},
			{Name: "apply", Step: flow.Applying, Status: "tidying", Unit: flow.BatchUnit, Executor: flow.Agent, Writes: true, Output: flow.ApplyFile, Prompt: "apply", Answer: "summary"},
			{Name: "ci", Step: flow.Checking, Status: "linting", Fixing: "fixing_lint", FixQueue: "ci_fix", Unit: flow.BatchUnit, Executor: flow.Command, Writes: true, Output: "lint.json", Prompt: "fix_ci", Answer: "summary", Commands: "run.ci"},
		},
	}
}

// A flow is data. A flow that no package knows runs through the same code, with its own document
// and check, and without decisions, tests or verification.
func TestNewFlowNeedsOnlyATable(t *testing.T) {
	s := newScene(t, "SQLite", "controllers")
	f := tidying()
	s.opt.Flow, s.opt.Progress = f, progress.Open(progress.Options{Documents: s.opt.Documents, Flow: f})
	s.opt.Checks = run.Checks{Commands: map[string][]string{"ci": {"grep -q tidy app/controllers/blog/posts_controller.rb"}}}
	s.play(`- match: '^# analyze '
  result: {structured: {summary: It could be tidier.}}
- match: '^# batch_plan '
  result: {structured: {batches: [{id: b1, reads: [], title: Tidy, items: [tidy], write_targets: [app/controllers/blog/posts_controller.rb], effort: low, after: []}]}}
- match: '^# apply '
  steps: [{edit: {path: app/controllers/blog/posts_controller.rb, find: class, replace: "# pending\nclass"}}]
  result: {structured: {summary: Nearly.}}
- match: '^# fix_ci '
  steps: [{edit: {path: app/controllers/blog/posts_controller.rb, find: pending, replace: tidy}}]
  result: {structured: {summary: Now it is tidy.}}
`)
	out := s.conduct(request{Only: []string{"blog/posts"}})
	if out.Failed != 0 || out.Complete != 1 {
		t.Fatalf("%d complete, %d failed: %+v", out.Complete, out.Failed, out.State.Units)
	}
	u, err := s.opt.Progress.Unit(t.Context(), "blog/posts")
	must(t, err)
	var survey struct{ Summary string }
	must(t, json.Unmarshal(u.Outputs["survey.json"], &survey))
	b := u.Batches[0]
	if c := b.Check("ci"); survey.Summary == "" || b.Status != flow.Complete || c == nil || c.Fixes != 1 || c.State != flow.CheckPassed || b.Landed == nil {
		t.Fatalf("survey %q, batch %+v", survey.Summary, b)
	}
	if _, err := os.Stat(filepath.Join(s.opt.Documents.Unit("blog/posts").Batch("b1").Dir(), "lint.json")); err != nil {
		t.Error(err)
	}
}
