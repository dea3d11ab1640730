package progress

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"lockkeeper/internal/flow"
)

func TestReferences(t *testing.T) {
	for _, text := range []string{"topic posts/pagination", "item blog/posts/i3", "plan posts", "plan blog/posts", "plan +tasks", "review blog/posts/b1", "gap posts/b1/1", "gap blog/posts/b1/12"} {
		r, err := ParseRef(text)
		ok(t, err)
		if r.String() != text {
			t.Errorf("%q reads as %q", text, r)
		}
		var back Ref
		ok(t, json.Unmarshal(get[[]byte](t)(json.Marshal(r)), &back))
		if back != r {
			t.Errorf("%q comes back as %q", r, back)
		}
	}
	r := get[Ref](t)(ParseRef("  gap   blog/posts/b1/12 "))
	if want := (Ref{Kind: GapKind, Unit: "blog/posts", Batch: "b1", Gap: 12}); r != want {
		t.Errorf("read %+v", r)
	}
	for _, text := range []string{"", "item", "posts/i3", "item i3", "item posts/", "item /i3", "topic posts", "thing posts/i3", "gap posts/1", "gap posts/b1/0", "gap posts/b1/x", "gap posts/b1/01", "review posts", "plan posts/ x", "plan /", "item a//i1"} {
		r, err := ParseRef(text)
		if err == nil {
			t.Errorf("%q reads as %+v", text, r)
			continue
		}
		wantRefused(t, err, "item posts/i3")
	}
}

// shows: PL-78 PL-94 GP-9 GP-25
func TestOrderOfDecisions(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	bring(t, b, "topics", "analyze")
	bring(t, b, "items", "audit")
	ok(t, b.Decide(ctx, "items", "ann", Choice{Item: "i3", Decision: flow.Todo}))
	bring(t, b, "last", "audit")
	ok(t, b.Decide(ctx, "last", "ann", Choice{Item: "i2", Decision: flow.Todo}, Choice{Item: "i3", Decision: flow.Todo}))
	bring(t, b, "plan", "batch_plan")
	withGaps(t, b)
	bring(t, b, "review", "approve")
	apply(t, b, "review", "b1", "verify")
	ok(t, b.PutReview(ctx, "review", "b1", changed))
	units := []string{"topics", "items", "last", "plan", unit, "review", "nothing yet"}
	queue := get[[]Decision](t)(b.Waiting(ctx, units))
	var got []string
	for _, g := range queue {
		got = append(got, fmt.Sprintf("%s %d/%d", g.Ref, g.Frees, g.Left))
		if g.Title == "" || g.Since.Before(start) || len(g.Facts) == 0 {
			t.Errorf("%s says too little: %+v", g.Ref, g)
		}
	}
	want := []string{
		"plan plan 2/1", "review review/b1 2/1", "item last/i1 2/1", // each frees two pieces of work for one answer; oldest first
		"item items/i1 2/2", "topic topics/which-pagination-do-blogs-use 1/2", "topic topics/which-pagination-do-blogs-use-2 1/2", "item items/i2 1/2",
		"gap blog/posts/b1/1 0/1", "gap blog/posts/b1/2 0/1", "gap blog/posts/b1/3 0/1",
	}
	slices.Sort(want[:3])
	slices.Sort(got[:3])
	if !slices.Equal(got, want) {
		t.Errorf("queue\n%q\nwant\n%q", got, want)
	}

	// Items with the same words are linked.
	at := slices.IndexFunc(queue, func(g Decision) bool { return g.Ref.Unit == "last" })
	all := append([]Ref{queue[at].Ref}, queue[at].Same...)
	if len(all) != 2 {
		t.Fatalf("the same: %v", all)
	}
	for _, r := range all {
		ok(t, b.Decide(ctx, r.Unit, "ann", Choice{Item: r.Item, Decision: flow.Reject, Notes: "nowhere"}))
	}
	wantStatus(t, b.see(t, "last"), "batch_plan", "planning_batches")
	if u := b.see(t, "items"); u.Open() != 1 {
		t.Errorf("items has %d open", u.Open())
	}
}

// Every page reads the decisions of all units, so reading them must be fast.
// shows: PL-94
func TestManyUnitsAreReadFast(t *testing.T) {
	b := newBook(t)
	whole, _ := complete(t)
	var units []string
	for n := range 120 {
		name := fmt.Sprintf("unit%d", n)
		copyUnit(t, whole, b, name)
		units = append(units, name)
	}
	began := time.Now()
	for _, name := range units {
		wantStatus(t, b.see(t, name), "", flow.Complete)
	}
	t.Logf("120 units with 240 batches in %s", time.Since(began))
}
