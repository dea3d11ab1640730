package progress

import (
	"slices"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// Each topic of a controller is answered by the method that was chosen for it.
//
// shows: PL-13
func TestTopicsByAPI(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	const first, second = "which-pagination-do-blogs-use", "which-pagination-do-blogs-use-2"
	byAPI := func(want ...string) {
		t.Helper()
		if got := get[[]string](t)(b.ByAPI(ctx, b.see(t, unit))); !slices.Equal(got, want) {
			t.Errorf("%q are asked of the API, want %q", got, want)
		}
	}
	wantRefused(t, b.ChooseAPI(ctx, unit, first, "ann"), "no such topic")
	bring(t, b, unit, "analyze")
	byAPI()
	wantRefused(t, b.WithdrawAPI(ctx, unit, first, "ann"), "waits for people")
	ok(t, b.ChooseAPI(ctx, unit, first, "ann"))
	byAPI(first)
	wantRefused(t, b.ChooseAPI(ctx, unit, first, "bob"), "ann already chose this")
	ok(t, b.ChooseAPI(ctx, unit, second, "bob"))
	byAPI(first, second)
	ok(t, b.WithdrawAPI(ctx, unit, first, "ann"))
	byAPI(second)
	ok(t, b.ChooseAPI(ctx, unit, first, "ann"))
	ok(t, b.Answer(ctx, unit, second, documents.MethodPaste, "a book says so", "ann"))
	byAPI(first)
	wantRefused(t, b.ChooseAPI(ctx, unit, second, "ann"), "it was answered by ann")
	wantRefused(t, b.ChooseAPI(ctx, unit, first, " "), "required")

	// The choice does not apply to another question with the same slug.
	ok(t, b.Redo(ctx, unit, "analyze", "ann"))
	other := analysis
	other.Topics = []flow.Topic{{Prompt: "Which  pagination do blogs use?"}}
	ok(t, b.PutAnalysis(ctx, unit, other, nil))
	if got := b.see(t, unit).Topics[0].Slug; got != first {
		t.Fatalf("the slug is %s", got)
	}
	byAPI()
	ok(t, b.ChooseAPI(ctx, unit, first, "ann"))
	byAPI(first)
	ok(t, b.WithdrawAPI(ctx, unit, first, "ann"))
	byAPI()
}

// A policy matches items by their ratings alone, not by earlier decisions.
func TestPolicyMeets(t *testing.T) {
	item := flow.Ready{Impact: flow.Medium, Effort: flow.Low}
	for text, want := range map[string]bool{"all": true, "none": false, "impact>=medium": true, "impact>=medium,effort<=low": true, "impact=high": false, "effort>=medium": false, "reviews": false} {
		p := get[Policy](t)(ParsePolicy(text))
		if got := p.Matches(item); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
