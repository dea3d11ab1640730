package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plainly is a simple substitute for the normalization in package documents.
func plainly(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

// shows: PL-18 PL-66 GP-20 GP-21
func TestAudit(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 3, 4, 5, 0, time.UTC) }
	prior := []EarlierDecision{
		{"blog/posts", "Add a cache", Reject, day(1), "too early", false},
		{"blog/posts", "Paginate the index", Defer, day(2), "later", false},
		{"blog/posts", "Rate limit comments", Reject, day(3), "", true},
		{"blog/posts", "Escape the title of every post", Reject, day(4), "", false},
		{"blog/posts", "Log in JSON", Reject, day(5), "", false},
		{"blog/posts", "log in json", Defer, day(6), "", false},
		{"shop/carts", "Validate the form", Reject, day(7), "", false},
	}
	ready := func(id, text string) Ready { return Ready{ID: id, Description: text, Impact: High, Effort: Low} }
	items := []Ready{
		ready("i1", "add a  CACHE"), ready("i2", "Paginate the index"), ready("i3", "Rate limit comments"), ready("i4", "Escape the title of each post"),
		ready("i5", "Log in JSON"), ready("i6", "Validate the form"), ready("i7", "paginate the INDEX"), ready("i8", "Something new"),
	}
	audit := AuditItems(items, "blog/posts", prior, plainly)
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
		var items []Ready
		for i := range rapid.IntRange(0, 6).Draw(t, "items") {
			items = append(items, Ready{ID: fmt.Sprint(i), Description: strings.Join(words.Draw(t, "item"), " ")})
		}
		var prior []EarlierDecision
		for i := range rapid.IntRange(0, 6).Draw(t, "prior") {
			prior = append(prior, EarlierDecision{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "controller"), strings.Join(words.Draw(t, "was"), " "),
				rapid.SampledFrom([]Decision{Defer, Reject}).Draw(t, "decision"), time.Unix(int64(i), 0), "", rapid.Bool().Draw(t, "enabled")})
		}
		audit := AuditItems(items, "a", prior, plainly)
		if len(audit.Items)+len(audit.Dropped) != len(items) {
			t.Fatalf("%d of %d", len(audit.Items)+len(audit.Dropped), len(items))
		}
		for _, d := range audit.Dropped {
			it := items[slices.IndexFunc(items, func(r Ready) bool { return r.ID == d.ID })]
			same := func(text string) bool { return plainly(text) == plainly(it.Description) }
			rejected := slices.ContainsFunc(prior, func(p EarlierDecision) bool {
				return p.Controller == "a" && p.Decision == Reject && same(p.Description)
			})
			double := slices.ContainsFunc(audit.Items, func(o Audited) bool { return o.ID != d.ID && same(o.Description) })
			if !rejected && !double {
				t.Fatalf("%q was dropped: %s", it.Description, d.Reason)
			}
		}
		slices.Reverse(prior)
		if again := AuditItems(items, "a", prior, plainly); fmt.Sprintf("%+v", again.Dropped) != fmt.Sprintf("%+v", audit.Dropped) {
			t.Fatalf("%+v, then %+v", audit.Dropped, again.Dropped)
		}
	})
}
