package progress

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// gateOf returns the open decision with a reference.
func gateOf(t *testing.T, b *Tracker, ref string) Decision {
	t.Helper()
	r := get[Ref](t)(ParseRef(ref))
	gates := b.see(t, r.Unit).OpenDecisions()
	at := slices.IndexFunc(gates, func(g Decision) bool { return g.Ref == r })
	if at < 0 {
		t.Fatalf("%s does not wait: %v", ref, gates)
	}
	return gates[at]
}

// asSeen returns the tracker of a person who saw a decision.
func (b *Tracker) asSeen(g Decision) *Tracker { return b.IfUnchanged(map[Ref]string{g.Ref: g.Version}) }

func wantStale(t *testing.T, err error, words ...string) *StaleError {
	t.Helper()
	var stale *StaleError
	if !errors.As(err, &stale) || lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Fatalf("not stale: %v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is missing in %q", w, err)
		}
	}
	return stale
}

// The version of a decision stays the same from one read to the next, independent of other
// decisions. It changes when any part of the decision changes.
//
// shows: PL-78
func TestVersions(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	bring(t, b, "blog/posts", "audit")
	first, second := gateOf(t, b, "item blog/posts/i1"), gateOf(t, b, "item blog/posts/i2")
	ok(t, b.Decide(ctx, "blog/posts", "ann", Choice{Item: "i2", Decision: flow.Defer}))
	if again := gateOf(t, b, "item blog/posts/i1"); again.Version != first.Version || again.Version == second.Version {
		t.Errorf("versions %s, %s and %s", first.Version, again.Version, second.Version)
	}
	base := Decision{Title: "t", Facts: []Fact{{"a", "1"}, {"b", "2"}}}.withVersion()
	for name, other := range map[string]Decision{
		"title": {Title: "u", Facts: base.Facts}, "value": {Title: "t", Facts: []Fact{{"a", "1"}, {"b", "3"}}}, "order": {Title: "t", Facts: []Fact{{"b", "2"}, {"a", "1"}}},
		"one more": {Title: "t", Facts: []Fact{{"a", "1"}, {"b", "2"}, {"c", ""}}}, "one less": {Title: "t", Facts: base.Facts[:1]}, "cut elsewhere": {Title: "t", Facts: []Fact{{"a", "1b"}, {"", "2"}}},
	} {
		if other.withVersion().Version == base.Version {
			t.Errorf("%s: the same version", name)
		}
	}
	gone := Decision{Title: "t", Facts: base.Facts[:1]}.withVersion()
	stale := &StaleError{Ref: first.Ref, Seen: base.Version, Now: &gone, Changed: gone.changedSince(base.Version)}
	wantStale(t, stale, "it has changed: something you saw was removed")
	for _, odd := range []string{"", "x", strings.Repeat("ä", 20)} { // invented versions
		if list := base.changedSince(odd); len(list) != 3 {
			t.Errorf("of %q: %v", odd, list)
		}
	}
}

// Every kind of answer is refused if the person saw another version. The refusal says what
// changed.
//
// shows: PL-78 GP-25
func TestStaleAnswers(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	bring(t, b, "topics", "analyze")
	topic := gateOf(t, b, "topic topics/which-pagination-do-blogs-use")
	ok(t, b.asSeen(topic).Answer(ctx, "topics", topic.Ref.Topic, documents.MethodPaste, "keyset", "ann"))
	wantStale(t, b.asSeen(topic).RejectTopic(ctx, "topics", topic.Ref.Topic, "we know", "bob"), "it is done, by ann")

	bring(t, b, "plan", "batch_plan")
	plan := gateOf(t, b, "plan plan")
	_, err := b.asSeen(plan).MoveItem(ctx, "plan", b.see(t, "plan").Plan.Batches[1].Items[0], "b1", "ann")
	ok(t, err)
	stale := wantStale(t, b.asSeen(plan).ApprovePlan(ctx, "plan", "bob"), "plan plan is not what you saw: it has changed: ", "b1 is now: ")
	if stale.Now == nil || stale.Now.Version != gateOf(t, b, "plan plan").Version {
		t.Errorf("%+v", stale)
	}
	ok(t, b.asSeen(*stale.Now).ApprovePlan(ctx, "plan", "bob"))
	_, err = b.asSeen(plan).SetTargets(ctx, "plan", "b1", []string{"app/a.rb"}, "ann")
	wantStale(t, err, "it is approved, by bob")

	withGaps(t, b)
	one, two := gateOf(t, b, "gap blog/posts/b1/1"), gateOf(t, b, "gap blog/posts/b1/2")
	ok(t, b.asSeen(one).DismissGap(ctx, unit, "b1", 1, "ann"))
	_, err = b.asSeen(one).FollowUpGap(ctx, unit, "b1", 1, "", "bob")
	wantStale(t, err, "it is dismissed, by ann")
	id := get[string](t)(b.asSeen(two).FollowUpGap(ctx, unit, "b1", 2, "", "ann"))
	wantStale(t, b.asSeen(two).DismissGap(ctx, unit, "b1", 2, "bob"), "it is followed up by batch "+id+", by ann")

	bring(t, b, "review", "approve")
	apply(t, b, "review", "b1", "verify")
	ok(t, b.PutReview(ctx, "review", "b1", changed))
	review := gateOf(t, b, "review review/b1")
	ok(t, b.asSeen(review).ReturnReview(ctx, "review", "b1", []string{"no"}, "ann"))
	wantStale(t, b.asSeen(review).ApproveReview(ctx, "review", "b1", "bob"), "it is returned, by ann")

	bring(t, b, "items", "audit")
	item := gateOf(t, b, "item items/i1")
	ok(t, b.Redo(ctx, "items", "analyze", "ann"))
	wantStale(t, b.asSeen(item).Decide(ctx, "items", "bob", Choice{Item: "i1", Decision: flow.Todo}), "it is no longer open, and items is analyzing")
}

// An undone landing can be made again.
//
// shows: GP-18
func TestUndoneAndBack(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	bring(t, b, unit, "approve")
	apply(t, b, unit, "b1", "land")
	wantRefused(t, b.ClearUndone(ctx, unit, "b1", "ann"), "was not undone")
	ok(t, b.PutUndone(ctx, unit, "b1", "ann"))
	ok(t, b.ClearUndone(ctx, unit, "b1", "ann"))
	is, _ := b.see(t, unit).Batch("b1")
	if is.Landed == nil || is.Landed.Undone != nil {
		t.Errorf("landed %+v", is.Landed)
	}
	wantRefused(t, b.RedoBatch(ctx, unit, "b1", "apply", "ann"), "it landed at")
}
