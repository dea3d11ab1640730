package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/store"
)

// A person reviews the diff before it lands. Meanwhile the batch holds no locks. Comments go to
// the fix loop, together with the diff. The new changes are tested, fixed and reviewed again.
//
// shows: CF-46
func TestReview(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.opt.Review = "all"
	s.tasks(strings.Replace(one, "]}]", "], tests: [\"grep one app/models/one.rb\"]}]", 1))
	s.play(`
- match: '(?s)^# fix_review \S+one\s.*too short.*\+one\b'
  steps: [{edit: {path: app/models/one.rb, find: "one\n", replace: "longer\n"}}]
  result: {structured: {summary: longer}}
- match: '(?s)^# fix_tests \S+one\s.*attempt 1 of.*\+longer\b'
  steps: [{edit: {path: app/models/one.rb, find: "longer\n", replace: "one, longer\n"}}]
  result: {structured: {summary: fixed}}
` + oneScript)
	out := s.conduct(request{})
	if len(out.Waiting) != 1 || out.Waiting[0].Ref.Kind != progress.ReviewKind {
		t.Fatalf("%+v", out)
	}
	s.holds("app/models/one.rb", "")
	must(t, s.opt.Store.View(t.Context(), func(r store.Reader) error {
		held, err := r.List(0, 10)
		if len(held) != 0 {
			t.Errorf("%+v is held while a person thinks", held[0])
		}
		return err
	}))
	must(t, s.opt.Progress.ReturnReview(t.Context(), tasks, "one", []string{"too short"}, "ada"))
	out = s.conduct(request{})
	if len(out.Waiting) != 1 {
		t.Fatalf("%+v", out)
	}
	facts := map[string]string{}
	for _, f := range out.Waiting[0].Facts {
		facts[f.Name] = f.Value
	}
	if facts["sent back for"] != "too short" || facts["summary"] != "fixed" {
		t.Errorf("the person is told %v", facts)
	}
	must(t, s.opt.Progress.ApproveReview(t.Context(), tasks, "one", "ada"))
	out = s.conduct(request{})
	if b := s.batch(out, tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("%+v", b)
	}
	s.holds("app/models/one.rb", "one, longer\n")
}

// returnedScript writes one.rb, and writes a longer one after a returned review.
const returnedScript = `
- match: '(?s)^# task .*one.*too short'
  steps: [{write: {path: app/models/one.rb, content: "made again\n"}}]
  result: {structured: {summary: again}}
- match: '^# fix_review '
  steps: [{write: {path: app/models/one.rb, content: "longer\n"}}]
  result: {structured: {summary: longer}}
` + oneScript

// sentBack returns a scene in which a person has returned a diff.
func sentBack(t *testing.T, script, test string) *scene {
	t.Helper()
	s := newScene(t, "SQLite", "tasks")
	s.opt.Review, s.opt.Limits.Fixes = "all", 0
	write(t, s.root, "app/models/one.rb", "before\n")
	s.tasks(strings.Replace(one, "]}]", "], tests: [\""+test+"\"]}]", 1))
	s.play(script)
	s.resume(false)
	must(t, s.opt.Progress.ReturnReview(t.Context(), tasks, "one", []string{"too short"}, "ada"))
	return s
}

// The changes for a review are kept when their tests fail, so the agent is not called again.
//
// shows: CF-46
func TestReturnedOnce(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	flag := filepath.Join(dir, "flag")
	s := sentBack(t, returnedScript, "grep one app/models/one.rb || test -e "+flag)
	agents := s.opt.Reach
	s.opt.Reach = func(name string) run.Reach {
		r := agents(name)
		r.Read = append(r.Read, dir) // tests see the flag
		return r
	}
	if b := s.batch(s.resume(false), tasks, "one"); b.Status != flow.Failed {
		t.Fatalf("%+v", b)
	}
	must(t, os.WriteFile(flag, nil, 0o600))
	if out := s.resume(true); len(out.Waiting) != 1 || out.Waiting[0].Ref.Kind != progress.ReviewKind {
		t.Fatalf("%+v", out)
	}
	if n := s.callsFor("fix_review"); n != 1 {
		t.Errorf("asked %d times", n)
	}
	must(t, s.opt.Progress.ApproveReview(t.Context(), tasks, "one", "ada"))
	s.resume(false)
	s.holds("app/models/one.rb", "longer\n")
}

// Another program edits the file after the diff was returned. The batch is applied again, and the
// agent gets the person's comments.
func TestReturnedAndOvertaken(t *testing.T) {
	s := sentBack(t, returnedScript, "true")
	write(t, s.root, "app/models/one.rb", "edited\n")
	if out := s.resume(false); len(out.Waiting) != 1 || out.Waiting[0].Ref.Kind != progress.ReviewKind {
		t.Fatalf("%+v", out)
	}
	must(t, s.opt.Progress.ApproveReview(t.Context(), tasks, "one", "ada"))
	s.resume(false)
	s.holds("app/models/one.rb", "made again\n")
}

// If the agent changes nothing after a return, the person is asked again.
func TestReturnWithoutAChange(t *testing.T) {
	s := sentBack(t, "- match: '^# fix_review '\n  result: {structured: {summary: it is fine as it is}}\n"+oneScript, "true")
	for range 2 {
		if out := s.resume(false); len(out.Waiting) != 1 || out.Waiting[0].Ref.Kind != progress.ReviewKind {
			t.Fatalf("%+v", out)
		}
		must(t, s.opt.Progress.ReturnReview(t.Context(), tasks, "one", []string{"look again"}, "ada"))
	}
	if n := s.callsFor("fix_review"); n != 2 {
		t.Errorf("asked %d times", n)
	}
	s.holds("app/models/one.rb", "before\n")
}

// With run.land: after_apply, changes for a review also land before their tests.
func TestReturnedAfterApply(t *testing.T) {
	s := sentBack(t, returnedScript, "true")
	s.opt.Land = "after_apply"
	if out := s.resume(false); len(out.Waiting) != 1 || out.Waiting[0].Ref.Kind != progress.ReviewKind {
		t.Fatalf("%+v", out)
	}
	s.holds("app/models/one.rb", "before\n")
	must(t, s.opt.Progress.ApproveReview(t.Context(), tasks, "one", "ada"))
	s.resume(false)
	s.holds("app/models/one.rb", "longer\n")
}
