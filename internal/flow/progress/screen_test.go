package progress

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"lockkeeper/internal/flow"
)

func screenDoc(name string, targets ...string) flow.ScreenDoc {
	return flow.ScreenDoc{Screen: name, Findings: []json.RawMessage{[]byte(`"slow"`)}, WriteTargets: targets}
}

// shows: SW-5 SW-8 SW-67 GP-16 PL-85
func TestScreens(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	b := bookIn(dir, flow.Screens())
	screen := func() *Screen { t.Helper(); return get[*Screen](t)(b.Screen(ctx, "blog", "posts", "Post Detail")) }
	if s := screen(); s.Doc != nil || s.Status != "analyzing" {
		t.Errorf("screen %+v", s)
	}
	doc := screenDoc("Post Detail", "app/a.rb")
	if err := b.PutScreen(ctx, "blog", "posts", "Post Detail", screenDoc("Post Detail", "app/"), nil); err == nil {
		t.Error("a directory is taken for a write target")
	}
	ok(t, b.PutScreen(ctx, "blog", "posts", "Post Detail", doc, calls))
	ok(t, b.PutScreen(ctx, "blog", "posts", "Post Detail", doc, nil))
	s := screen()
	if s.Doc == nil || s.Doc.Screen != "Post Detail" || s.Status != flow.Complete || len(s.Documents) != 1 || s.Documents[0].By != "claude" {
		t.Errorf("screen %+v", s)
	}
	path := filepath.Join(dir, ".analysis/blog/posts/Post Detail/analysis.json")
	ok(t, os.Truncate(path, 20))
	if s := screen(); s.Doc != nil || s.Status != "analyzing" || len(s.Malformed) != 1 {
		t.Errorf("cut off: %+v", s)
	}

	wantRefused(t, b.IncludeScreen(ctx, "blog", "posts", "Post Detail", "ann"), "not excluded")
	wantRefused(t, b.ExcludeScreen(ctx, "blog", "posts", "Post Detail", "", "ann"), "why")
	wantRefused(t, b.ExcludeScreen(ctx, "blog", "posts", "Post Detail", "broken", ""), "required")
	ok(t, b.ExcludeScreen(ctx, "blog", "posts", "Post Detail", "broken", "ann"))
	wantRefused(t, b.ExcludeScreen(ctx, "blog", "posts", "Post Detail", "broken", "bob"), "excluded by ann at")
	if s := screen(); s.Excluded == nil || s.Excluded.Reason != "broken" || s.Status != flow.Complete {
		t.Errorf("excluded: %+v", s)
	}
	ok(t, b.IncludeScreen(ctx, "blog", "posts", "Post Detail", "bob"))
	ok(t, b.PutScreen(ctx, "blog", "posts", "Post Detail", doc, calls))
	if s := screen(); s.Excluded != nil || s.Doc == nil || len(s.Malformed) > 0 {
		t.Errorf("included: %+v", s)
	}
	if kept := files(t, filepath.Dir(path)); len(kept) != 2 {
		t.Errorf("the malformed one is not kept: %q", kept)
	}
}

// shows: SW-9 SW-21 CF-20 CF-22
func TestMerge(t *testing.T) {
	ctx := t.Context()
	docs := []flow.ScreenDoc{screenDoc("Index", "app/b.rb", "app/a.rb"), screenDoc("Detail", "./app/a.rb")}
	b := bookIn(t.TempDir(), flow.Screens())
	wantStatus(t, b.see(t, unit), "analyze", "analyzing")
	ok(t, b.PutMerge(ctx, unit, docs))
	u := b.see(t, unit)
	wantStatus(t, u, "merge", "applying")
	if m := u.Batches[0]; m.ID != MergeBatch || !m.Approved || !slices.Equal(m.WriteTargets, []string{"app/a.rb", "app/b.rb"}) {
		t.Errorf("merge %+v", m)
	}
	apply(t, b, unit, MergeBatch, "land")
	wantStatus(t, b.see(t, unit), "", flow.Complete)
	ok(t, b.PutMerge(ctx, unit, docs))
	wantStatus(t, b.see(t, unit), "", flow.Complete)
	ok(t, b.PutMerge(ctx, unit, append(docs, screenDoc("New", "app/c.rb"))))
	if u := b.see(t, unit); u.Phase() != "merge" || !u.Batches[0].Stale {
		t.Errorf("with another screen it is %s", u.Phase())
	}
	ok(t, b.PutMerge(ctx, "empty", []flow.ScreenDoc{screenDoc("Index")}))
	wantStatus(t, b.see(t, "empty"), "", flow.Complete)

	gated := bookIn(t.TempDir(), flow.Screens().Reviewed("batch_plan"))
	ok(t, gated.PutMerge(ctx, unit, docs))
	u = gated.see(t, unit)
	wantStatus(t, u, "batch_plan", "awaiting_decisions")
	if !u.AwaitsReview || len(u.OpenDecisions()) != 1 {
		t.Errorf("gates %+v", u.OpenDecisions())
	}
	get[[]string](t)(gated.SetTargets(ctx, unit, MergeBatch, []string{"app/a.rb"}, "ann"))
	_, err := gated.SplitBatch(ctx, unit, MergeBatch, nil, "ann")
	wantRefused(t, err, "no decisions on items")
	ok(t, gated.ApprovePlan(ctx, unit, "ann"))
	wantStatus(t, gated.see(t, unit), "merge", "applying")
	wantRefused(t, gated.PutPlan(ctx, unit, nil, nil))
	wantRefused(t, newBook(t).PutTasks(ctx, unit, flow.Plan{}), "PutPlan")
}
