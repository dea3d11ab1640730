package progress

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/flow"
)

// shows: PL-2 PL-7 PL-59 PL-61 PL-62 GP-19
func TestEachStepLeadsToTheNext(t *testing.T) {
	b := newBook(t)
	want := []struct{ phase, status string }{
		{"analyze", "analyzing"}, {"research", "researching"}, {"extract", "extracting"}, {"synthesize", "synthesizing"}, {"audit", "auditing"},
		{"decide", "awaiting_decisions"}, {"batch_plan", "planning_batches"}, {"batch_plan", "planning_batches"}, {"apply", "applying"},
	}
	for i, s := range steps {
		wantStatus(t, b.see(t, unit), want[i].phase, want[i].status)
		if s.name == "approve" && !b.see(t, unit).AwaitsReview {
			t.Error("an unapproved plan awaits no review")
		}
		ok(t, s.do(t.Context(), b, unit))
	}
	wantStatus(t, b.see(t, unit), "apply", "applying")
	for _, batch := range []string{"b1", "b2"} {
		for i, phase := range []string{"apply", "test", "ci", "verify"} {
			apply(t, b, unit, batch, phase)
			is, _ := b.see(t, unit).Batch(batch)
			want := [][2]string{{"test", "testing"}, {"ci", "ci_checking"}, {"verify", "verifying"}, {LandPhase, "verifying"}}[i]
			if is.Next != want[0] || is.Status != want[1] {
				t.Errorf("%s after %s: %s, %s; want %s", batch, phase, is.Next, is.Status, want)
			}
		}
		apply(t, b, unit, batch, "land")
	}
	wantStatus(t, b.see(t, unit), "", flow.Complete)
	got := files(t, filepath.Join(b.documents.Dir(), "blog/posts"))
	want2 := strings.Fields(`analysis.json audit.json batches.json
		batches/b1/apply.json batches/b1/ci_results.json batches/b1/landed.json batches/b1/started.json batches/b1/test_results.json batches/b1/verification.json
		batches/b2/apply.json batches/b2/ci_results.json batches/b2/landed.json batches/b2/started.json batches/b2/test_results.json batches/b2/verification.json
		decisions.json extract.json research/which-pagination-do-blogs-use-2.md research/which-pagination-do-blogs-use.md synthesize.json`)
	if !slices.Equal(got, want2) {
		t.Errorf("files %q\nwant  %q", got, want2)
	}
}

// complete returns a tracker with a finished unit, and the unit's folder.
func complete(t *testing.T) (b *Tracker, dir string) {
	t.Helper()
	b = newBook(t)
	bring(t, b, unit, "approve")
	apply(t, b, unit, "b1", "land")
	apply(t, b, unit, "b2", "land")
	wantStatus(t, b.see(t, unit), "", flow.Complete)
	return b, filepath.Join(b.documents.Dir(), "blog/posts")
}

// copied returns a copy of a tracker's files, and the folder of the unit in it.
func copied(t *testing.T, b *Tracker) (*Tracker, string) {
	t.Helper()
	dir := t.TempDir()
	ok(t, os.CopyFS(filepath.Join(dir, ".pipeline"), os.DirFS(b.documents.Dir())))
	return bookIn(dir, b.flow), filepath.Join(dir, ".pipeline", "blog/posts")
}

// losses lists the state of a unit after the loss of each file.
var losses = []struct{ file, phase, status string }{
	{"analysis.json", "analyze", "analyzing"},
	{"research/which-pagination-do-blogs-use.md", "research", "researching"},
	{"extract.json", "extract", "extracting"},
	{"synthesize.json", "synthesize", "synthesizing"},
	{"audit.json", "audit", "auditing"},
	{"decisions.json", "decide", "awaiting_decisions"},
	{"batches.json", "batch_plan", "planning_batches"},
	{"batches/b1/apply.json", "apply", "applying"},
	{"batches/b1/test_results.json", "test", "testing"},
	{"batches/b1/ci_results.json", "ci", "ci_checking"},
	{"batches/b1/verification.json", "verify", "verifying"},
	{"batches/b1/landed.json", LandPhase, "verifying"},
	{"batches/b2/test_results.json", "test", "testing"},
}

// shows: PL-60 PL-61 PL-62 PL-63 PL-64 PL-85
func TestFirstMissingOrMalformedDecides(t *testing.T) {
	whole, _ := complete(t)
	for _, c := range losses {
		for how, damage := range map[string]func(t *testing.T, path string, text []byte){
			"gone":    func(t *testing.T, path string, _ []byte) { ok(t, os.Remove(path)) },
			"cut off": func(t *testing.T, path string, text []byte) { ok(t, os.WriteFile(path, text[:len(text)*2/3], 0o644)) },
			"emptied": func(t *testing.T, path string, _ []byte) { ok(t, os.WriteFile(path, nil, 0o644)) },
			"bit flips": func(t *testing.T, path string, text []byte) {
				text[len(text)-3] ^= 1
				ok(t, os.WriteFile(path, text, 0o644))
			},
		} {
			t.Run(c.file+" "+how, func(t *testing.T) {
				b, dir := copied(t, whole)
				path := filepath.Join(dir, c.file)
				text := get[[]byte](t)(os.ReadFile(path))
				damage(t, path, text)
				u := b.see(t, unit)
				wantStatus(t, u, c.phase, c.status)
				text2 := strings.HasSuffix(c.file, ".md")
				if listed := len(u.Malformed) == 1; listed != (how != "gone" && !(text2 && how == "emptied")) {
					t.Errorf("malformed: %+v", u.Malformed)
				}
				if strings.HasPrefix(c.file, "batches/b1") {
					other, _ := u.Batch("b2")
					if other.Status != flow.Complete {
						t.Errorf("b2 is %s: one batch hides the other", other.Status)
					}
				}
				if c.file == "extract.json" && (u.Synthesis != nil || u.Plan != nil || len(u.Batches) > 0) {
					t.Error("what is behind a missing document counts")
				}
			})
		}
	}
}

// A lost phase runs again. Documents made from equal output still count.
// shows: PL-63 PL-85
func TestLostPhaseIsRunAgain(t *testing.T) {
	whole, _ := complete(t)
	for _, step := range steps[:7] {
		t.Run(step.name, func(t *testing.T) {
			b, dir := copied(t, whole)
			at := slices.IndexFunc(losses, func(c struct{ file, phase, status string }) bool { return c.phase == step.name })
			ok(t, os.Truncate(filepath.Join(dir, losses[at].file), 10))
			u := b.see(t, unit)
			if step.name == "research" {
				ok(t, b.Answer(t.Context(), unit, u.Topics[0].Slug, "api", "again", "runner"))
			} else {
				ok(t, step.do(t.Context(), b, unit))
			}
			if step.name == "batch_plan" { // the approval was lost with the plan
				wantStatus(t, b.see(t, unit), "batch_plan", "planning_batches")
				ok(t, b.ApprovePlan(t.Context(), unit, "ann"))
			}
			u = b.see(t, unit)
			wantStatus(t, u, "", flow.Complete)
			if len(u.Malformed) > 0 {
				t.Errorf("malformed: %v", u.Malformed)
			}
		})
	}
}

// shows: GP-24
func TestUnitsPassStraightOn(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	none := analysis
	none.Topics = nil
	ok(t, b.PutAnalysis(ctx, unit, none, nil))
	wantStatus(t, b.see(t, unit), "extract", "extracting")
	ok(t, b.PutExtract(ctx, unit, flow.Extract{Items: extract.Items[:1]}, nil))
	ok(t, b.PutSynthesis(ctx, unit, flow.Synthesis{Dropped: []flow.Dropped{{ID: "i1", Reason: "done"}}}, nil))
	ok(t, b.Audit(ctx, unit))
	wantStatus(t, b.see(t, unit), "", flow.Complete)
	wantRefused(t, b.PutPlan(ctx, unit, nil, nil), "nothing is left to do")

	// A person can still add an item.
	id := get[string](t)(b.AddItem(ctx, unit, flow.Ready{Description: "Rename it"}, "ann"))
	wantStatus(t, b.see(t, unit), "batch_plan", "planning_batches")
	ok(t, b.Decide(ctx, unit, "ann", Choice{Item: id, Was: flow.Todo}))
	wantStatus(t, b.see(t, unit), "", flow.Complete)

	bring(t, b, "other", "audit")
	ok(t, b.Decide(ctx, "other", "ann", Choice{Item: "i1", Decision: flow.Defer}, Choice{Item: "i2", Decision: flow.Reject}, Choice{Item: "i3", Decision: flow.Defer}))
	wantStatus(t, b.see(t, "other"), "", flow.Complete)
}

// shows: PL-63 PL-64
func TestStepsNeedTheirPredecessors(t *testing.T) {
	whole := newBook(t)
	ok(t, os.MkdirAll(whole.documents.Dir(), 0o755))
	for n := range steps {
		if n > 0 {
			ok(t, steps[n-1].do(t.Context(), whole, unit))
		}
		for i, s := range steps {
			if n == i || s.name == "research" && n > i {
				continue
			}
			b, _ := copied(t, whole)
			before := files(t, filepath.Dir(b.documents.Dir()))
			err := s.do(t.Context(), b, unit)
			late := n > i
			switch {
			case late && err == nil && s.name != "approve": // storing the same again
			case err == nil:
				t.Errorf("%s before %s is taken", s.name, steps[n].name)
			default:
				for _, one := range strings.Split(err.Error(), "\n") {
					if !strings.Contains(one, "next:") {
						t.Errorf("%s before %s: %q does not say what to do", s.name, steps[n].name, one)
					}
				}
			}
			if after := files(t, filepath.Dir(b.documents.Dir())); !slices.Equal(before, after) {
				t.Errorf("%s before %s: files %q, were %q", s.name, steps[n].name, after, before)
			}
		}
	}
}

// shows: PL-64
func TestBatchStepsNeedTheirPredecessors(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	bring(t, b, unit, "batch_plan")
	_, err := b.Begin(ctx, unit, "b1", "runner")
	wantRefused(t, err, "it is not approved")
	ok(t, b.ApprovePlan(ctx, unit, "ann"))
	_, err = b.Begin(ctx, unit, "b2", "runner")
	wantRefused(t, err, "comes after b1")
	_, err = b.Begin(ctx, unit, "b9", "runner")
	wantRefused(t, err, "b1, b2")
	u := b.see(t, unit)
	if got := u.Batches[1].Blocked; !slices.Equal(got, []string{"b1"}) {
		t.Errorf("b2 is blocked by %q", got)
	}
	wantRefused(t, b.PutApplied(ctx, unit, "b1", flow.Applied{Batch: u.Batches[0].Digest, Summary: "s"}, nil), "not begun")
	wantRefused(t, b.PutCheck(ctx, unit, "b1", "test", passed, nil), "applying")
	wantRefused(t, b.PutCheck(ctx, unit, "b1", "ci", passed, nil), "applying")
	wantRefused(t, b.PutVerification(ctx, unit, "b1", pass, nil), "applying")
	wantRefused(t, b.PutReview(ctx, unit, "b1", changed), "applying")
	wantRefused(t, b.PutLanded(ctx, unit, "b1", landed), "applying")
	apply(t, b, unit, "b1", "apply")
	ok(t, b.PutCheck(ctx, unit, "b1", "test", flow.Checked{Files: changed, Fixes: 2}, nil))
	is, _ := b.see(t, unit).Batch("b1")
	if is.Next != "test" || is.Tested == nil || is.Tested.Fixes != 2 {
		t.Errorf("failed tests lead to %s", is.Next)
	}
	wantRefused(t, b.PutCheck(ctx, unit, "b1", "ci", passed, nil), "testing")
	apply(t, b, unit, "b1", "ci")
	failed := pass
	failed.Verdict.Verdict = "fail"
	ok(t, b.PutVerification(ctx, unit, "b1", failed, nil))
	if is, _ := b.see(t, unit).Batch("b1"); is.Next != "verify" {
		t.Errorf("a failed verification leads to %s", is.Next)
	}
	wantRefused(t, b.PutLanded(ctx, unit, "b1", landed), "verifying")
	apply(t, b, unit, "b1", "land")
	wantRefused(t, b.PutCheck(ctx, unit, "b1", "test", flow.Checked{State: flow.CheckPassed, Passed: true}, nil), "landed")
	ok(t, b.PutLanded(ctx, unit, "b1", landed)) // storing the same again
}

// Documents made from another definition are ignored but kept.
// shows: PL-64 GP-17
func TestChangedDefinitionStartsAgain(t *testing.T) {
	ctx := t.Context()
	b := bookIn(t.TempDir(), flow.Tasks())
	plan := flow.Plan{Batches: []flow.Batch{
		{ID: "one", Title: "one", Prompt: "do one", WriteTargets: []string{"a.rb"}, Tests: []string{"make test"}},
		{ID: "two", Title: "two", Prompt: "do two", WriteTargets: []string{"b.rb"}},
	}}
	wantStatus(t, b.see(t, "+tasks"), "batch_plan", "planning_batches")
	ok(t, b.PutTasks(ctx, "+tasks", plan))
	wantStatus(t, b.see(t, "+tasks"), "apply", "applying")
	apply(t, b, "+tasks", "one", "land")
	apply(t, b, "+tasks", "two", "land")
	ok(t, b.PutTasks(ctx, "+tasks", plan))
	wantStatus(t, b.see(t, "+tasks"), "", flow.Complete)

	plan.Batches[1].Prompt = "do two otherwise"
	ok(t, b.PutTasks(ctx, "+tasks", plan))
	u := b.see(t, "+tasks")
	wantStatus(t, u, "apply", "applying")
	if u.Batches[0].Status != flow.Complete || !u.Batches[1].Stale || u.Batches[1].Landed != nil || u.Batches[1].Started != nil {
		t.Errorf("batches %+v", u.Batches)
	}
	apply(t, b, "+tasks", "two", "apply")
	u = b.see(t, "+tasks")
	wantStatus(t, u, "test", "testing")
	kept := files(t, filepath.Join(b.documents.Dir(), "+tasks/batches/two/earlier/1"))
	if want := []string{"apply.json", "ci_results.json", "landed.json", "test_results.json", "verification.json"}; !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	wantRefused(t, b.PutApplied(ctx, "+tasks", "one", flow.Applied{Batch: strings.Repeat("0", 64), Summary: "s"}, nil), "landed")
	wantRefused(t, b.PutApplied(ctx, "+tasks", "two", flow.Applied{Batch: strings.Repeat("0", 64), Summary: "s"}, nil), "definition")
}

// copyUnit copies the folder of the unit to another tracker.
func copyUnit(t *testing.T, from, to *Tracker, name string) {
	t.Helper()
	ok(t, os.CopyFS(to.documents.Unit(name).Dir(), os.DirFS(from.documents.Unit(unit).Dir())))
}
