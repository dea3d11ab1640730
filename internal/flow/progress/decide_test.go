package progress

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// told returns the decisions on a unit that later runs know, such as "deferred Full text search".
func told(t *testing.T, b *Tracker, unit string) (list []string) {
	t.Helper()
	for _, e := range get[[]documents.PastDecision](t)(b.documents.PastDecisions(t.Context())) {
		if e.Controller == unit {
			list = append(list, e.Decision+" "+e.Description)
		}
	}
	slices.Sort(list)
	return list
}

func wantTold(t *testing.T, b *Tracker, want ...string) {
	t.Helper()
	if got := told(t, b, unit); !slices.Equal(got, want) {
		t.Errorf("later runs know %q, want %q", got, want)
	}
}

// shows: PL-19 PL-66 PL-67 PL-78 PL-95
func TestDecidingOneByOne(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	bring(t, b, unit, "audit")
	ok(t, b.Decide(ctx, unit, "ann", Choice{Item: "i1", Decision: flow.Todo, Notes: "at last"}))
	ok(t, b.Decide(ctx, unit, "bob", Choice{Item: "i2", Decision: flow.Reject, Notes: "never"}))
	u := b.see(t, unit)
	wantStatus(t, u, "decide", "awaiting_decisions")
	if u.Open() != 1 || u.Decisions != nil || u.NeedsRecovery() {
		t.Errorf("open %d, decisions %v", u.Open(), u.Decisions)
	}
	wantTold(t, b)

	wantRefused(t, b.Decide(ctx, unit, "bob", Choice{Item: "i1", Decision: flow.Defer}), "it was decided as TODO by ann at")
	wantRefused(t, b.Decide(ctx, unit, "bob", Choice{Item: "i3", Was: flow.Todo, Decision: flow.Defer}), "reset since")
	wantRefused(t, b.Decide(ctx, unit, "bob", Choice{Item: "i9", Decision: flow.Defer}), "i1, i2, i3")
	wantRefused(t, b.Decide(ctx, unit, "bob", Choice{Item: "i3", Decision: "MAYBE"}), "TODO, DEFER or REJECT")
	wantRefused(t, b.Decide(ctx, unit, " ", Choice{Item: "i3", Decision: flow.Defer}), "required")
	wantRefused(t, b.Decide(ctx, unit, "bob", Choice{Item: "i3", Decision: flow.Defer}, Choice{Item: "i1", Decision: flow.Defer}), "i1")
	if u := b.see(t, unit); u.Open() != 1 {
		t.Error("of several choices with a wrong one some were taken")
	}
	ok(t, b.Decide(ctx, unit, "bob", Choice{Item: "i1", Decision: flow.Todo, Notes: "at last"})) // the same decision as ann's

	ok(t, b.Decide(ctx, unit, "bob", Choice{Item: "i3", Decision: flow.Defer}))
	u = b.see(t, unit)
	wantStatus(t, u, "batch_plan", "planning_batches")
	wantTold(t, b, "deferred Full text search", "rejected Cache the feed")
	if d := u.Decisions.Items[0]; d.By != "ann" || d.Notes != "at last" || d.At.IsZero() {
		t.Errorf("decided %+v", d)
	}

	// Decisions can be changed and withdrawn until batches are planned.
	ok(t, b.Decide(ctx, unit, "ann", Choice{Item: "i2", Was: flow.Reject, Decision: flow.Defer}))
	wantTold(t, b, "deferred Cache the feed", "deferred Full text search")
	ok(t, b.Decide(ctx, unit, "ann", Choice{Item: "i3", Was: flow.Defer}))
	wantStatus(t, b.see(t, unit), "decide", "awaiting_decisions")
	wantTold(t, b)
	ok(t, b.Decide(ctx, unit, "ann", Choice{Item: "i3", Decision: flow.Reject}, Choice{Item: "i2", Was: flow.Defer, Decision: flow.Todo}))
	wantTold(t, b, "rejected Full text search")
	ok(t, b.PutPlan(ctx, unit, batches, nil))
	wantRefused(t, b.Decide(ctx, unit, "ann", Choice{Item: "i3", Was: flow.Reject}), "planned at")
}

// shows: PL-19 GP-24
func TestOwnItems(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	bring(t, b, unit, "decide")
	wantRefused(t, func() error { _, err := b.AddItem(ctx, unit, flow.Ready{Description: " - "}, "ann"); return err }(), "no words")
	wantRefused(t, func() error {
		_, err := b.AddItem(ctx, unit, flow.Ready{Description: "cache, the FEED"}, "ann")
		return err
	}(), "blog/posts/i2")
	wantRefused(t, func() error {
		_, err := b.AddItem(ctx, unit, flow.Ready{Description: "x", Impact: "huge"}, "ann")
		return err
	}(), "low, medium or high")
	one := get[string](t)(b.AddItem(ctx, unit, flow.Ready{Description: "Rename the class"}, "ann"))
	two := get[string](t)(b.AddItem(ctx, unit, flow.Ready{Description: "Move the class", Impact: flow.High}, "bob"))
	u := b.see(t, unit)
	if item, found := u.Item(two); one != "a1" || two != "a2" || !found || !item.Added || item.Decision != flow.Todo || item.Effort != flow.Medium || item.By != "bob" {
		t.Errorf("added %s %s %+v", one, two, item)
	}
	wantStatus(t, u, "batch_plan", "planning_batches")
	wantRefused(t, b.PutPlan(ctx, unit, batches, nil), "a1", "in no batch")

	ok(t, b.Decide(ctx, unit, "bob", Choice{Item: two, Was: flow.Todo, Decision: flow.Defer}))
	wantTold(t, b, "deferred Full text search", "deferred Move the class")
	ok(t, b.Decide(ctx, unit, "bob", Choice{Item: two, Was: flow.Defer}))
	wantTold(t, b, "deferred Full text search")
	with := slices.Clone(batches)
	with[0].Items = []string{"i1", one}
	ok(t, b.PutPlan(ctx, unit, with, nil))
	if _, err := b.AddItem(ctx, unit, flow.Ready{Description: "late"}, "ann"); err == nil {
		t.Error("an item was added to a plan")
	}
}

// shows: PL-18 PL-65 PL-66 GP-20 GP-21
func TestEarlierDecisionsAndReenabling(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	ok(t, b.documents.Record(ctx,
		documents.PastDecision{Controller: unit, Description: "paginate the Index!", Decision: documents.Rejected, Timestamp: start, Notes: "no", By: "zoe"},
		documents.PastDecision{Controller: unit, Description: "Full text search", Decision: documents.Deferred, Timestamp: start, By: "zoe"},
		documents.PastDecision{Controller: "other", Description: "Cache the feed", Decision: documents.Rejected, Timestamp: start, By: "zoe"}))
	bring(t, b, unit, "audit")
	u := b.see(t, unit)
	if len(u.Items) != 2 || u.Items[0].ID != "i2" || u.Items[0].Prior != nil || u.Items[1].Prior == nil {
		t.Fatalf("audited %+v", u.Items)
	}
	if gone := u.DroppedItems(); len(gone) != 1 || gone[0].ID != "i1" || !strings.Contains(gone[0].Reason, "no") {
		t.Errorf("gone %+v", gone)
	}
	ok(t, b.Decide(ctx, unit, "ann", Choice{Item: "i2", Decision: flow.Defer}, Choice{Item: "i3", Decision: flow.Todo}))
	wantStatus(t, b.see(t, unit), "batch_plan", "planning_batches")
	wantTold(t, b, "deferred Cache the feed", "deferred Full text search", "rejected paginate the Index!")

	// The item comes back, and the others need no new decision.
	if again := get[bool](t)(b.Reenable(ctx, unit, u.DroppedItems()[0].Description, "ann")); !again {
		t.Error("the audit is not done again")
	}
	wantStatus(t, b.see(t, unit), "audit", "auditing")
	ok(t, b.Audit(ctx, unit))
	u = b.see(t, unit)
	wantStatus(t, u, "decide", "awaiting_decisions")
	if back, _ := u.Item("i1"); u.Open() != 1 || back.Decision != "" || back.Prior == nil || back.Prior.Decision != flow.Reject {
		t.Errorf("items %+v", u.Items)
	}
	ok(t, b.Decide(ctx, unit, "ann", Choice{Item: "i1", Decision: flow.Todo}))
	wantStatus(t, b.see(t, unit), "batch_plan", "planning_batches")
	get[bool](t)(b.UndoReenable(ctx, unit, "paginate the index", "ann"))
	ok(t, b.Audit(ctx, unit))
	u = b.see(t, unit)
	wantStatus(t, u, "batch_plan", "planning_batches")
	if len(u.Items) != 2 || len(u.Decisions.Items) != 2 {
		t.Errorf("items %+v", u.Items)
	}

	// If there is a plan, the item waits for the next run.
	plan := []flow.Batch{{ID: "x", Title: "x", Items: []string{"i3"}, WriteTargets: []string{"a.rb"}, Effort: flow.High}}
	ok(t, b.PutPlan(ctx, unit, plan, nil))
	if again := get[bool](t)(b.Reenable(ctx, unit, "paginate the index", "ann")); again {
		t.Error("the audit is done again under a plan")
	}
	wantStatus(t, b.see(t, unit), "batch_plan", "planning_batches")
	_, err := b.Reenable(ctx, unit, "Full text search", "ann")
	wantRefused(t, err, "not rejected")

	ok(t, b.Redo(ctx, unit, "audit", "ann"))
	ok(t, b.Audit(ctx, unit))
	u = b.see(t, unit)
	if u.Open() != 3 {
		t.Errorf("after a new audit items are %+v", u.Items)
	}
	// When the new decision is withdrawn, the entry of the earlier run is restored.
	ok(t, b.Decide(ctx, unit, "ann", Choice{Item: "i1", Decision: flow.Reject}, Choice{Item: "i2", Decision: flow.Todo}, Choice{Item: "i3", Decision: flow.Reject}))
	wantTold(t, b, "deferred Cache the feed", "rejected Full text search", "rejected Paginate the index")
	ok(t, b.Decide(ctx, unit, "ann", Choice{Item: "i1", Was: flow.Reject}, Choice{Item: "i3", Was: flow.Reject, Decision: flow.Todo}))
	wantTold(t, b, "deferred Cache the feed", "deferred Full text search", "rejected paginate the Index!")
}

// shows: GP-22
func TestDamagedListsLoseNothing(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	bring(t, b, "other", "decide")
	bring(t, b, unit, "audit")
	path := filepath.Join(b.documents.Dir(), "decisions", "deferred.json")
	whole := get[[]byte](t)(os.ReadFile(path))
	ok(t, os.WriteFile(path, whole[:len(whole)/2], 0o644))
	all := []Choice{{Item: "i1", Decision: flow.Todo}, {Item: "i2", Decision: flow.Todo}, {Item: "i3", Decision: flow.Defer}}
	ok(t, b.Decide(ctx, unit, "ann", all[:2]...))
	err := b.Decide(ctx, unit, "ann", all[2])
	if err == nil || !strings.Contains(err.Error(), "deferred.json") || !strings.Contains(err.Error(), "stored in the draft") {
		t.Fatalf("got %v", err)
	}
	u := b.see(t, unit)
	wantStatus(t, u, "decide", "awaiting_decisions")
	if !u.NeedsRecovery() || u.Open() != 0 {
		t.Errorf("needs recovery %v, open %d", u.NeedsRecovery(), u.Open())
	}
	ok(t, os.WriteFile(path, whole, 0o644))
	ok(t, b.Recover(ctx, unit))
	wantStatus(t, b.see(t, unit), "batch_plan", "planning_batches")
	wantTold(t, b, "deferred Full text search")
}

// shows: PL-13 PL-14 PL-84 GP-23
func TestTopics(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	wantRefused(t, b.Answer(ctx, unit, "x", documents.MethodPaste, "text", "ann"), "analyzing")
	bring(t, b, unit, "analyze")
	u := b.see(t, unit)
	one, two := u.Topics[0].Slug, u.Topics[1].Slug
	if one == two || u.Topics[0].State != Pending {
		t.Fatalf("topics %+v", u.Topics)
	}
	wantRefused(t, b.Answer(ctx, unit, "x", documents.MethodPaste, "text", "ann"), one)
	wantRefused(t, b.Answer(ctx, unit, one, "guess", "text", "ann"), "paste")
	wantRefused(t, b.Answer(ctx, unit, one, documents.MethodPaste, " \n", "ann"), "empty")
	wantRefused(t, b.RejectTopic(ctx, unit, one, "", "ann"), "why")
	wantRefused(t, b.ReopenTopic(ctx, unit, one, "ann"), "no answer")
	ok(t, b.Answer(ctx, unit, one, documents.MethodPaste, "keyset", "ann"))
	wantRefused(t, b.Answer(ctx, unit, one, documents.MethodAPI, "offset", "runner"), "answered by ann at")
	wantStatus(t, b.see(t, unit), "research", "researching")
	ok(t, b.RejectTopic(ctx, unit, two, "asked twice", "bob"))
	u = b.see(t, unit)
	wantStatus(t, u, "extract", "extracting")
	if a, c := u.Topics[0], u.Topics[1]; a.State != Done || a.Text != "keyset" || a.Method != "paste" || a.By != "ann" || c.State != Rejected || c.Text != "asked twice" {
		t.Errorf("topics %+v", u.Topics)
	}
	ok(t, b.ReopenTopic(ctx, unit, one, "bob"))
	wantStatus(t, b.see(t, unit), "research", "researching")
	wantRefused(t, b.PutExtract(ctx, unit, extract, nil), "researching")
	ok(t, b.Answer(ctx, unit, one, documents.MethodAPI, "offset", "runner"))
	ok(t, b.PutExtract(ctx, unit, extract, nil))
	wantRefused(t, b.ReopenTopic(ctx, unit, one, "bob"), "read its answers at")

	// An answer to another question is rejected, and a person's own text is accepted.
	ok(t, b.Redo(ctx, unit, "analyze", "ann"))
	other := analysis
	other.Topics = []flow.Topic{{Prompt: "Which pagination do blogs use?"}, {Prompt: "Which pagination do blogs use"}}
	ok(t, b.PutAnalysis(ctx, unit, other, nil))
	u = b.see(t, unit)
	if u.Topics[0].State != Done || u.Topics[1].State != Pending {
		t.Errorf("topics %+v", u.Topics)
	}
	ok(t, os.WriteFile(filepath.Join(b.documents.Unit(unit).Dir(), "research", two+".md"), []byte("my own\n"), 0o644))
	wantStatus(t, b.see(t, unit), "extract", "extracting")
}

// An analysis that a person wrote needs no slugs.
// shows: GP-23
func TestTopicsOfAPerson(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	dir := b.documents.Unit(unit).Dir()
	ok(t, os.MkdirAll(dir, 0o755))
	ok(t, os.WriteFile(filepath.Join(dir, flow.AnalysisFile), []byte(`{"purpose":"p","behaviour":"b","screens":[],"relations":[],"files":[],
		"research_topics":[{"prompt":"One?"},{"prompt":"One!"}]}`), 0o644))
	u := b.see(t, unit)
	wantStatus(t, u, "research", "researching")
	ok(t, b.Answer(ctx, unit, u.Topics[0].Slug, documents.MethodPaste, "1", "ann"))
	wantStatus(t, b.see(t, unit), "research", "researching")
	ok(t, b.Answer(ctx, unit, u.Topics[1].Slug, documents.MethodPaste, "2", "ann"))
	wantStatus(t, b.see(t, unit), "extract", "extracting")
}
