package progress

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/flow"
)

// withGaps brings a unit to a batch with gaps.
func withGaps(t *testing.T, b *Tracker) {
	t.Helper()
	bring(t, b, unit, "approve")
	begun := get[*Batch](t)(b.Begin(t.Context(), unit, "b1", "runner"))
	gap := func(path, phase string) flow.Gap {
		return flow.Gap{Path: path, Reason: "not declared", Phase: phase, Planned: "batch_plan", Rescue: "rescue/1", At: start}
	}
	ok(t, b.PutApplied(t.Context(), unit, "b1", flow.Applied{Batch: begun.Digest, Summary: "did it", Files: changed,
		Gaps: []flow.Gap{gap("app/c.rb", "apply"), gap("app/d.rb", "apply")}}, calls))
	tested := passed
	tested.Gaps = []flow.Gap{gap("app/e.rb", "test")}
	ok(t, b.PutCheck(t.Context(), unit, "b1", "test", tested, nil))
}

// shapes formats the batches of a plan, such as "b1: i1 i2 > app/a.rb".
func shapes(u *Unit) (list []string) {
	for _, b := range u.Batches {
		list = append(list, b.ID+": "+strings.Join(b.Items, " ")+" > "+strings.Join(b.WriteTargets, " "))
	}
	return list
}

func wantShapes(t *testing.T, u *Unit, want ...string) {
	t.Helper()
	if got := shapes(u); !slices.Equal(got, want) {
		t.Errorf("batches %q, want %q", got, want)
	}
}

// shows: PL-20 PL-24 PL-25 PL-78 GP-19
func TestEditingBatches(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	_, err := b.MoveItem(ctx, unit, "i1", "b2", "ann")
	wantRefused(t, err, "analyzing")
	wantRefused(t, b.ApprovePlan(ctx, unit, "ann"), "analyzing")
	bring(t, b, unit, "batch_plan")
	wantShapes(t, b.see(t, unit), "b1: i1 > app/a.rb", "b2: i2 > app/b.rb")
	wantRefused(t, b.WithdrawApproval(ctx, unit, "ann"), "not approved")

	get[[]string](t)(b.MergeBatches(ctx, unit, "b1", "b2", "ann"))
	wantShapes(t, b.see(t, unit), "b1: i1 i2 > app/a.rb app/b.rb")
	get[[]string](t)(b.SplitBatch(ctx, unit, "b1", []string{"i2"}, "ann"))
	u := b.see(t, unit)
	wantShapes(t, u, "b1: i1 > app/a.rb app/b.rb", "b2: i2 > app/a.rb app/b.rb")
	if len(u.Warnings) == 0 {
		t.Error("two batches change one file without a warning")
	}
	if warnings := get[[]string](t)(b.SetTargets(ctx, unit, "b2", []string{"./app/b.rb"}, "ann")); len(warnings) != 1 {
		t.Errorf("warnings %q", warnings)
	}
	get[[]string](t)(b.SetTargets(ctx, unit, "b1", []string{"app/a.rb"}, "ann"))
	for _, targets := range [][]string{nil, {"app/"}, {"../x"}, {".git/config"}} {
		if _, err := b.SetTargets(ctx, unit, "b1", targets, "ann"); err == nil {
			t.Errorf("targets %q are taken", targets)
		}
	}
	ok(t, b.ApprovePlan(ctx, unit, "ann"))
	wantRefused(t, b.ApprovePlan(ctx, unit, "bob"), "approved by ann at")
	get[[]string](t)(b.MoveItem(ctx, unit, "i2", "b1", "bob"))
	u = b.see(t, unit)
	wantShapes(t, u, "b1: i1 i2 > app/a.rb app/b.rb")
	if !u.AwaitsReview || u.Batches[0].Approved {
		t.Error("an edited plan is still approved")
	}
	_, err = b.Begin(ctx, unit, "b1", "runner")
	wantRefused(t, err, "approve plan")
	ok(t, b.ApprovePlan(ctx, unit, "ann"))
	ok(t, b.WithdrawApproval(ctx, unit, "ann"))
	ok(t, b.ApprovePlan(ctx, unit, "ann"))
	get[*Batch](t)(b.Begin(ctx, unit, "b1", "runner"))
	wantRefused(t, b.WithdrawApproval(ctx, unit, "ann"), "started by runner")
	_, err = b.SplitBatch(ctx, unit, "b1", []string{"i2"}, "ann")
	wantRefused(t, err, "started by runner")
	_, err = b.SetTargets(ctx, unit, "b1", []string{"x.rb"}, "ann")
	wantRefused(t, err, "started by runner")

	ok(t, b.Redo(ctx, unit, "batch_plan", "ann"))
	wantStatus(t, b.see(t, unit), "batch_plan", "planning_batches")
	wantRefused(t, b.PutApplied(ctx, unit, "b1", flow.Applied{Batch: u.Batches[0].Digest, Summary: "s"}, nil), "no batches")
	kept := files(t, filepath.Join(u.folder.Dir(), "earlier"))
	if !slices.Equal(kept, []string{"1/batches.json"}) {
		t.Errorf("kept %q", kept)
	}
	wantRefused(t, b.Redo(ctx, unit, "apply", "ann"), "batch_plan")
}

// shows: PL-44 PL-83 SW-42 SW-75
func TestGaps(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	withGaps(t, b)
	before := b.see(t, unit).Documents
	wantRefused(t, b.DismissGap(ctx, unit, "b1", 4, "ann"), "3 gaps")
	wantRefused(t, b.DismissGap(ctx, unit, "b1", 0, "ann"), "3 gaps")
	wantRefused(t, b.ReopenGap(ctx, unit, "b1", 1, "ann"), "no answer")
	ok(t, b.DismissGap(ctx, unit, "b1", 2, "ann"))
	wantRefused(t, b.DismissGap(ctx, unit, "b1", 2, "bob"), "of ann was: dismissed")
	ok(t, b.ReopenGap(ctx, unit, "b1", 2, "bob"))
	ok(t, b.DismissGap(ctx, unit, "b1", 2, "bob"))
	id := get[string](t)(b.FollowUpGap(ctx, unit, "b1", 3, "the change", "ann"))
	_, err := b.FollowUpGap(ctx, unit, "b1", 3, "the change", "bob")
	wantRefused(t, err, "was: b3")

	u := b.see(t, unit)
	follow, found := u.Batch(id)
	if id != "b3" || !found || follow.Approved || !slices.Equal(follow.WriteTargets, []string{"app/e.rb"}) || !strings.Contains(follow.Prompt, "not declared") {
		t.Fatalf("%s: %+v", id, follow)
	}
	if !u.Batches[0].Approved || u.Batches[0].Started == nil || u.AwaitsReview {
		t.Error("the running batch was disturbed")
	}
	for _, p := range before {
		if !slices.ContainsFunc(u.Documents, func(now Document) bool { return reflect.DeepEqual(now, p) }) {
			t.Errorf("an answer changed what is known of %s", p.File)
		}
	}
	_, err = b.Begin(ctx, unit, id, "runner")
	wantRefused(t, err, "it is not approved")
	get[[]string](t)(b.SetTargets(ctx, unit, id, []string{"app/e.rb", "app/f.rb"}, "ann"))
	ok(t, b.ReopenGap(ctx, unit, "b1", 3, "ann"))
	if _, found := b.see(t, unit).Batch(id); found {
		t.Error("the follow-up is still there")
	}
	get[string](t)(b.FollowUpGap(ctx, unit, "b1", 3, "the change", "ann"))
	ok(t, b.PutCheck(ctx, unit, "b1", "ci", passed, nil))
	ok(t, b.PutVerification(ctx, unit, "b1", pass, nil))
	ok(t, b.PutLanded(ctx, unit, "b1", landed))
	apply(t, b, unit, "b2", "land")
	u = b.see(t, unit)
	wantStatus(t, u, "batch_plan", "planning_batches")
	if !u.AwaitsReview {
		t.Error("an unapproved follow-up awaits no review")
	}
	ok(t, b.ApprovePlan(ctx, unit, "ann"))
	wantStatus(t, b.see(t, unit), "apply", "applying")
	wantRefused(t, b.ReopenGap(ctx, unit, "b1", 3, "ann"), "is approved")
	apply(t, b, unit, "b3", "land")
	wantStatus(t, b.see(t, unit), "", flow.Complete)
}

// A gap whose change belongs elsewhere has a plan that another codebase can run.
//
// shows: PL-83
func TestPlanOfAGap(t *testing.T) {
	b := newBook(t)
	withGaps(t, b)
	of, _ := b.see(t, unit).Batch("b1")
	gap := of.Gaps()[2]
	change := "--- a/app/e.rb\n+++ b/app/e.rb\n@@ -1 +1 @@\n-a: &x\n+b\t# \"c\"\n"
	text := get[string](t)(of.PlanOf(gap, change))
	plan := get[*flow.TaskFile](t)(flow.ReadTasks("tasks.yaml", []byte(text)))
	if len(plan.Tasks) != 1 {
		t.Fatalf("%d tasks in\n%s", len(plan.Tasks), text)
	}
	task := plan.Tasks[0]
	if task.Name != "gap-b1-3" || !slices.Equal(task.Writes, []string{gap.Path}) || !strings.Contains(task.Prompt, gap.Reason) || !strings.Contains(task.Prompt, strings.TrimSpace(change)) {
		t.Errorf("%+v from\n%s", task, text)
	}
	get[string](t)(of.PlanOf(gap, ""))
}

// A plan that is read again from its file keeps the follow-ups of its gaps.
func TestFollowUpsOfTasks(t *testing.T) {
	ctx := t.Context()
	b := bookIn(t.TempDir(), flow.Tasks())
	plan := flow.Plan{Batches: []flow.Batch{{ID: "one", Title: "one", Prompt: "do one", WriteTargets: []string{"a.rb"}}}}
	ok(t, b.PutTasks(ctx, "+tasks", plan))
	begun := get[*Batch](t)(b.Begin(ctx, "+tasks", "one", "runner"))
	gap := flow.Gap{Path: "b.rb", Reason: "not declared", Phase: "apply", Planned: "plan", At: start}
	ok(t, b.PutApplied(ctx, "+tasks", "one", flow.Applied{Batch: begun.Digest, Summary: "did it", Files: changed, Gaps: []flow.Gap{gap}}, nil))
	id := get[string](t)(b.FollowUpGap(ctx, "+tasks", "one", 1, "the change", "ann"))
	ok(t, b.PutTasks(ctx, "+tasks", plan))
	ok(t, b.ApprovePlan(ctx, "+tasks", "ann"))
	ok(t, b.PutTasks(ctx, "+tasks", plan))
	if follow, found := b.see(t, "+tasks").Batch(id); !found || !follow.Approved {
		t.Errorf("the follow-up %s is gone", id)
	}
	plan.Batches[0].Prompt = "do something else"
	ok(t, b.PutTasks(ctx, "+tasks", plan))
	wantShapes(t, b.see(t, "+tasks"), "one:  > a.rb")
}

// shows: CF-46
func TestReviews(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	bring(t, b, unit, "approve")
	apply(t, b, unit, "b1", "verify")
	wantRefused(t, b.ApproveReview(ctx, unit, "b1", "ann"), "needs no review")
	wantRefused(t, b.PutReview(ctx, unit, "b1", nil), "verified")
	ok(t, b.PutReview(ctx, unit, "b1", changed))
	is, _ := b.see(t, unit).Batch("b1")
	if is.Next != ReviewPhase || is.Status != flow.AwaitingReview || !is.AwaitsReview {
		t.Errorf("%s %s", is.Next, is.Status)
	}
	wantRefused(t, b.PutLanded(ctx, unit, "b1", landed), "review")
	wantRefused(t, b.ReturnReview(ctx, unit, "b1", []string{" "}, "ann"), "required")
	ok(t, b.ReturnReview(ctx, unit, "b1", []string{"use keyset"}, "ann"))
	wantRefused(t, b.ApproveReview(ctx, unit, "b1", "bob"), "returned by ann")
	is, _ = b.see(t, unit).Batch("b1")
	if is.Next != "test" || is.Status != "fixing_tests" || !slices.Equal(is.Review.Comments, []string{"use keyset"}) || !slices.Equal(is.Files(), changed) {
		t.Errorf("%s %s %+v", is.Next, is.Status, is.Review)
	}
	wantRefused(t, b.PutCheck(ctx, unit, "b1", "ci", flow.Checked{State: flow.CheckPassed, Passed: true, Fixes: 1}, nil), "fixing_tests")
	wantRefused(t, b.PutVerification(ctx, unit, "b1", flow.Verification{Verdict: pass.Verdict}, nil), "fixing_tests")
	wantRefused(t, b.PutLanded(ctx, unit, "b1", landed), "fixing_tests")
	ok(t, b.PutCheck(ctx, unit, "b1", "test", passed, nil)) // even if the agent changed nothing
	is, _ = b.see(t, unit).Batch("b1")
	if is.Next != "ci" || is.Review != nil {
		t.Errorf("%s %+v", is.Next, is.Review)
	}
	apply(t, b, unit, "b1", "verify")
	ok(t, b.PutReview(ctx, unit, "b1", changed))
	ok(t, b.ApproveReview(ctx, unit, "b1", "ann"))

	// After another check and verification the review is valid only for the same files.
	again := passed
	again.Again = []flow.Recheck{{Moved: []string{"app/z.rb"}, At: start}}
	ok(t, b.PutCheck(ctx, unit, "b1", "test", again, nil))
	is, _ = b.see(t, unit).Batch("b1")
	if is.Next != "ci" || is.Verification != nil {
		t.Errorf("tested again: %s", is.Next)
	}
	ok(t, b.PutCheck(ctx, unit, "b1", "ci", passed, nil))
	ok(t, b.PutVerification(ctx, unit, "b1", pass, nil))
	is, _ = b.see(t, unit).Batch("b1")
	if is.Next != LandPhase || is.Review == nil || is.Review.State != Approved {
		t.Errorf("the review is lost: %s", is.Next)
	}
	other := pass
	other.Files = []flow.File{{Path: "app/a.rb", Old: changed[0].New}}
	ok(t, b.PutVerification(ctx, unit, "b1", other, nil))
	is, _ = b.see(t, unit).Batch("b1")
	if is.Next != LandPhase || is.Review != nil {
		t.Errorf("the review of another diff counts: %+v", is.Review)
	}
	ok(t, b.PutReview(ctx, unit, "b1", other.Files))
	ok(t, b.ApproveReview(ctx, unit, "b1", "ann"))
	ok(t, b.PutLanded(ctx, unit, "b1", landed))
	if is, _ = b.see(t, unit).Batch("b1"); is.Status != flow.Complete {
		t.Errorf("landed: %s", is.Status)
	}

	wantRefused(t, b.RedoBatch(ctx, unit, "b1", "apply", "ann"), "undo the landing")
	ok(t, b.PutUndone(ctx, unit, "b1", "ann"))
	wantRefused(t, b.PutUndone(ctx, unit, "b1", "ann"), "none of its changes")
	wantRefused(t, b.RedoBatch(ctx, unit, "b1", "decide", "ann"), "apply")
	ok(t, b.RedoBatch(ctx, unit, "b1", "verify", "ann"))
	if is, _ = b.see(t, unit).Batch("b1"); is.Next != "verify" {
		t.Errorf("undone and redone: %s", is.Next)
	}
}

// shows: GP-25 GP-26
func TestNotes(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	analyze, _ := b.flow.Phase("analyze")
	test, _ := b.flow.Phase("test")
	wantRefused(t, b.AddNote(ctx, unit, Note{Phase: "guess", Text: "x", By: "ann"}), "analyze")
	wantRefused(t, b.AddNote(ctx, unit, Note{Phase: "analyze", Text: " ", By: "ann"}), "empty")
	wantRefused(t, b.AddNote(ctx, unit, Note{Phase: "test", Batch: "b1", Text: "x", By: "ann"}), "no batches")
	ok(t, b.AddNote(ctx, unit, Note{Phase: "analyze", Text: "look at the routes", By: "ann"}))
	if got := b.see(t, unit).Notes("", analyze); len(got) != 1 || got[0].By != "ann" {
		t.Errorf("notes %+v", got)
	}
	bring(t, b, unit, "approve")
	if got := b.see(t, unit).Notes("", analyze); len(got) != 0 {
		t.Errorf("notes %+v after they were read", got)
	}
	ok(t, b.AddNote(ctx, unit, Note{Phase: "test", Batch: "b1", Text: "the clock", By: "ann"}))
	ok(t, b.AddNote(ctx, unit, Note{Phase: "test", Batch: "b1", Text: "and the zone", By: "bob"}))
	if u := b.see(t, unit); len(u.Notes("b1", test)) != 2 || len(u.Notes("b2", test)) != 0 {
		t.Errorf("notes %+v", u.Notes("b1", test))
	}
	apply(t, b, unit, "b1", "test")
	if got := b.see(t, unit).Notes("b1", test); len(got) != 0 {
		t.Errorf("notes %+v after they were read", got)
	}
}

func TestKeptFiles(t *testing.T) {
	b := newBook(t)
	sum := get[[32]byte](t)(b.Keep(t.Context(), unit, "b1", strings.NewReader("original")))
	f, err := b.Kept(unit, "b1", sum)
	ok(t, err)
	ok(t, f.Close())
	if _, err := b.Kept(unit, "b2", sum); err == nil {
		t.Error("another batch has it, too")
	}
}
