package progress

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"

	"pgregory.net/rapid"
)

// shows: PL-18 PL-66 GP-20 GP-21
func TestAudit(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 3, 4, 5, 0, time.UTC) }
	prior := []documents.PastDecision{
		{Controller: "blog/posts", Description: "Add a cache", Decision: documents.Rejected, Timestamp: day(1), Notes: "too early"},
		{Controller: "blog/posts", Description: "Paginate the index", Decision: documents.Deferred, Timestamp: day(2), Notes: "later"},
		{Controller: "blog/posts", Description: "Rate limit comments", Decision: documents.Rejected, Timestamp: day(3), Reenabled: &documents.Mark{}},
		{Controller: "blog/posts", Description: "Escape the title of every post", Decision: documents.Rejected, Timestamp: day(4)},
		{Controller: "blog/posts", Description: "Log in JSON", Decision: documents.Rejected, Timestamp: day(5)},
		{Controller: "blog/posts", Description: "log in json", Decision: documents.Deferred, Timestamp: day(6)},
		{Controller: "shop/carts", Description: "Validate the form", Decision: documents.Rejected, Timestamp: day(7)},
	}
	ready := func(id, text string) flow.Ready {
		return flow.Ready{ID: id, Description: text, Impact: flow.High, Effort: flow.Low}
	}
	items := []flow.Ready{
		ready("i1", "add a  CACHE"), ready("i2", "Paginate the index"), ready("i3", "Rate limit comments"), ready("i4", "Escape the title of each post"),
		ready("i5", "Log in JSON"), ready("i6", "Validate the form"), ready("i7", "paginate the INDEX"), ready("i8", "Something new"),
	}
	audit := auditItems(items, "blog/posts", prior)
	var got []string
	for _, it := range audit.Items {
		line := it.ID
		if p := it.Prior; p != nil {
			line += fmt.Sprintf(" %s %q similar %v %s", p.Decision, p.Description, p.Similar, p.At.Format(time.DateOnly))
		}
		got = append(got, line)
	}
	for _, d := range audit.Dropped {
		got = append(got, d.ID+" dropped: "+d.Reason)
	}
	want := []string{
		`i2 DEFER "Paginate the index" similar false 2026-01-02`,
		`i3 REJECT "Rate limit comments" similar false 2026-01-03`,
		`i4 REJECT "Escape the title of every post" similar true 2026-01-04`,
		`i5 DEFER "log in json" similar false 2026-01-06`,
		`i6`, `i8`,
		`i1 dropped: rejected on 2026-01-01 (too early)`,
		`i7 dropped: the same as i2`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// Whatever was decided before, each item is kept or dropped once. An item is dropped only for the
// same text. The order of the earlier decisions does not matter.
//
// shows: GP-20
func TestAuditKeepsCount(t *testing.T) {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"add", "Add", "cache", "index", "post", "title"}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		var items []flow.Ready
		for i := range rapid.IntRange(0, 6).Draw(t, "items") {
			items = append(items, flow.Ready{ID: fmt.Sprint(i), Description: strings.Join(words.Draw(t, "item"), " ")})
		}
		var prior []documents.PastDecision
		for i := range rapid.IntRange(0, 6).Draw(t, "prior") {
			p := documents.PastDecision{Controller: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "controller"), Description: strings.Join(words.Draw(t, "was"), " "),
				Decision: rapid.SampledFrom([]string{documents.Deferred, documents.Rejected}).Draw(t, "decision"), Timestamp: time.Unix(int64(i), 0)}
			if rapid.Bool().Draw(t, "enabled") {
				p.Reenabled = &documents.Mark{}
			}
			prior = append(prior, p)
		}
		audit := auditItems(items, "a", prior)
		if len(audit.Items)+len(audit.Dropped) != len(items) {
			t.Fatalf("%d of %d", len(audit.Items)+len(audit.Dropped), len(items))
		}
		for _, d := range audit.Dropped {
			it := items[slices.IndexFunc(items, func(r flow.Ready) bool { return r.ID == d.ID })]
			same := func(text string) bool { return documents.Normalize(text) == documents.Normalize(it.Description) }
			rejected := slices.ContainsFunc(prior, func(p documents.PastDecision) bool {
				return p.Controller == "a" && p.Decision == documents.Rejected && same(p.Description)
			})
			double := slices.ContainsFunc(audit.Items, func(o flow.Audited) bool { return o.ID != d.ID && same(o.Description) })
			if !rejected && !double {
				t.Fatalf("%q was dropped: %s", it.Description, d.Reason)
			}
		}
		slices.Reverse(prior)
		if again := auditItems(items, "a", prior); fmt.Sprintf("%+v", again.Dropped) != fmt.Sprintf("%+v", audit.Dropped) {
			t.Fatalf("%+v, then %+v", audit.Dropped, again.Dropped)
		}
	})
}
