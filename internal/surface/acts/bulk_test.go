package acts_test

import (
	"errors"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
)

// An answer with conditions decides what meets them. Of what a person was shown, it skips what changed
// since and says so, and answers the rest of the same unit.
func TestGiveMany(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	o.audited("blog/posts", "Paginate the index", "Cache the feed", "Drop the table")
	o.audited("admin/users", "Search by name")
	d := o.decider("ann")
	shown, err := d.Matching(ctx, "unit=blog/*", progress.ItemKind)
	must(t, err)
	if len(shown) != 3 || shown[0].Impact == "" {
		t.Fatalf("%+v", shown)
	}
	refs, seen := []progress.Ref{}, acts.Seen{}
	for _, g := range shown {
		refs, seen[g.Ref] = append(refs, g.Ref), g.Version
	}
	seen[refs[1]] = "another version"
	v, err := o.decider("bob").Give(ctx, "reject", refs[2:], acts.AnswerInput{Only: true})
	must(t, err, v.Err())
	v, err = d.GiveMany(ctx, "todo", refs, acts.AnswerInput{Seen: seen})
	must(t, err)
	var stale *progress.StaleError
	if len(v.Done) != 1 || v.Done[0].Ref != refs[0] || len(v.Refused) != 2 || !errors.As(v.Refused[0], &stale) || !errors.As(v.Refused[1], &stale) {
		t.Errorf("%+v", v)
	}
	u, err := o.book().Unit(ctx, "blog/posts")
	must(t, err)
	if item, _ := u.Item(refs[2].Item); item.Decision != flow.Reject {
		t.Errorf("the answer of another person is replaced: %+v", item)
	}
	if _, err := d.GiveWhere(ctx, "todo", "", acts.AnswerInput{}); err == nil {
		t.Error("no conditions select everything")
	}
	if v, err := d.GiveWhere(ctx, "defer", `text="search by"`, acts.AnswerInput{}); err != nil || len(v.Done) != 1 || v.Done[0].Ref.Unit != "admin/users" {
		t.Errorf("%+v, %v", v, err)
	}
}
