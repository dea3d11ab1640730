package progress

import (
	"fmt"
	"testing"

	"lockkeeper/internal/flow"
)

func TestPolicies(t *testing.T) {
	for text, spelled := range map[string]string{
		"all": "all", "none": "none", " ALL ": "all",
		"impact>=medium,effort<=medium":           "impact>=medium,effort<=medium",
		"Impact >= medium , effort = low,reviews": "impact>=medium,effort=low,reviews",
		"topics=reject":                           "topics=reject",
		"reviews,topics=reject,none":              "none,topics=reject,reviews",
	} {
		p, err := ParsePolicy(text)
		ok(t, err)
		if p.String() != spelled {
			t.Errorf("%q reads as %q, want %q", text, p, spelled)
		}
	}
	for _, text := range []string{"", ",", "all,", "some", "impact>medium", "impact>=huge", "risk<=low", "all,none", "all,impact>=low", "none,effort=low", "topics=answer"} {
		p, err := ParsePolicy(text)
		if err == nil {
			t.Errorf("%q reads as %+v", text, p)
			continue
		}
		wantRefused(t, err, "impact>=medium")
	}
}

func TestPolicyDecides(t *testing.T) {
	prior := func(d flow.Decision, similar bool) *flow.Prior { return &flow.Prior{Decision: d, Similar: similar} }
	for _, c := range []struct {
		policy         string
		impact, effort flow.Level
		prior          *flow.Prior
		want           flow.Decision
	}{
		{"all", flow.Low, flow.High, nil, flow.Todo},
		{"all", flow.Low, flow.High, prior(flow.Defer, false), flow.Todo},
		{"none", flow.High, flow.Low, nil, flow.Defer},
		{"impact>=medium,effort<=medium", flow.Medium, flow.Medium, nil, flow.Todo},
		{"impact>=medium,effort<=medium", flow.High, flow.Low, nil, flow.Todo},
		{"impact>=medium,effort<=medium", flow.Low, flow.Low, nil, flow.Defer},
		{"impact>=medium,effort<=medium", flow.High, flow.High, nil, flow.Defer},
		{"impact=high", flow.High, flow.High, nil, flow.Todo},
		{"impact=high", flow.Medium, flow.Low, nil, flow.Defer},
		{"impact>=low", "", flow.Low, nil, flow.Defer},
		{"impact>=low", flow.High, flow.Low, prior(flow.Defer, false), flow.Defer},
		{"impact>=low", flow.High, flow.Low, prior(flow.Defer, true), flow.Defer},
		{"impact>=low", flow.High, flow.Low, prior(flow.Reject, true), flow.Defer},
		{"impact>=low", flow.High, flow.Low, prior(flow.Reject, false), flow.Todo}, // a person re-enabled it
	} {
		p := get[Policy](t)(ParsePolicy(c.policy))
		if got := p.Decide(flow.Audited{Ready: flow.Ready{Impact: c.impact, Effort: c.effort}, Prior: c.prior}); got != c.want {
			t.Errorf("%s: impact %s, effort %s, prior %+v: %s, want %s", p, c.impact, c.effort, c.prior, got, c.want)
		}
	}
}

// shows: PL-19 GP-19
func TestAutoDecide(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	auto := func(policy string) string {
		t.Helper()
		return fmt.Sprint(get[[]Ref](t)(b.AutoDecide(ctx, unit, get[Policy](t)(ParsePolicy(policy)), "ann")))
	}
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("decided %s, want %s", got, want)
		}
	}
	const policy = "impact>=medium,effort<=medium"
	want(auto(policy), "[]")
	bring(t, b, unit, "analyze")
	want(auto(policy), "[]")
	want(auto("topics=reject"), "[topic blog/posts/which-pagination-do-blogs-use topic blog/posts/which-pagination-do-blogs-use-2]")
	ok(t, b.PutExtract(ctx, unit, extract, nil))
	ok(t, b.PutSynthesis(ctx, unit, synthesis, nil))
	ok(t, b.Audit(ctx, unit))
	want(auto("topics=reject,reviews"), "[]")
	ok(t, b.Decide(ctx, unit, "bob", Choice{Item: "i1", Decision: flow.Reject}))
	want(auto(policy), "[item blog/posts/i2 item blog/posts/i3]")
	u := b.see(t, unit)
	if i1, i2, i3 := u.Items[0], u.Items[1], u.Items[2]; i1.Decision != flow.Reject || i2.Decision != flow.Todo || i3.Decision != flow.Defer || i2.By != "ann" || i2.Notes != "by the policy "+policy {
		t.Errorf("items %+v", u.Items)
	}
	wantTold(t, b, "deferred Full text search", "rejected Paginate the index")
	ok(t, b.PutPlan(ctx, unit, []flow.Batch{{ID: "x", Title: "x", Items: []string{"i2"}, WriteTargets: []string{"app/a.rb"}, Effort: flow.Low}}, nil))
	want(auto("topics=reject"), "[]")
	want(auto(policy), "[plan blog/posts]")
	want(auto(policy), "[]")
	apply(t, b, unit, "b1", "verify")
	ok(t, b.PutReview(ctx, unit, "b1", changed))
	want(auto("all"), "[]")
	want(auto("all,reviews"), "[review blog/posts/b1]")
	if is, _ := b.see(t, unit).Batch("b1"); is.Next != LandPhase {
		t.Errorf("approved and %s", is.Next)
	}
}
