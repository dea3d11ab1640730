package acts_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

// One answer decides all items with the same text. The verdict names each, the event has the
// person's name, and the answer can be withdrawn.
//
// shows: PL-78 GP-25
func TestGiveAndWithdraw(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	o.audited("blog/posts", "Paginate the index", "Cache the feed")
	o.audited("blog/comments", "Paginate the index")
	d := o.decider("ann")
	first := ref(t, "item blog/posts/i1")
	v, err := d.Give(ctx, "todo", []progress.Ref{first}, acts.AnswerInput{Notes: []string{"soon"}})
	must(t, err, v.Err())
	if len(v.Done) != 2 || v.Done[1].Ref.String() != "item blog/comments/i1" || v.Done[1].Like != first || v.Done[1].State != v.Done[0].What || v.Waiting != 1 || v.Conductor != "" {
		t.Fatalf("%+v", v)
	}
	if want := (acts.Progress{Unit: "blog/posts", Next: "decide", Waits: 1}); v.Units[0] != want {
		t.Errorf("%+v, not %+v", v.Units[0], want)
	}
	u, err := o.book().Unit(ctx, "blog/comments")
	must(t, err)
	if item, _ := u.Item("i1"); item.Decision != flow.Todo || item.By != "ann" || item.Notes != "soon" {
		t.Errorf("%+v", item)
	}
	rec, err := view.ReadRecord(ctx, o.app)
	must(t, err)
	told := slices.IndexFunc(rec.Events, func(e lockkeeper.Event) bool {
		return e.Kind == lockkeeper.EventDecided && e.Actor == person("ann") && strings.Contains(e.Reason, first.String())
	})
	if told < 0 {
		t.Error("no event was recorded")
	}
	v, err = d.Withdraw(ctx, []progress.Ref{first, ref(t, "item blog/posts/i2")})
	must(t, err)
	if len(v.Done) != 1 || len(v.Refused) != 1 || lockkeeper.CodeOf(v.Refused[0]) != lockkeeper.CodeRefused {
		t.Errorf("%+v", v)
	}
}

// An invalid answer is refused before any part of it is stored.
//
// shows: GP-25
func TestNoAnswers(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	o.audited("blog/posts", "Paginate the index")
	item := ref(t, "item blog/posts/i1")
	for name, give := range map[string]struct {
		word string
		refs []progress.Ref
		s    acts.AnswerInput
	}{
		"unknown word":  {"maybe", []progress.Ref{item}, acts.AnswerInput{}},
		"another kind":  {"approve", []progress.Ref{item}, acts.AnswerInput{}},
		"unknown unit":  {"todo", []progress.Ref{item, ref(t, "item blog/post/i1")}, acts.AnswerInput{}},
		"nothing":       {"todo", nil, acts.AnswerInput{}},
		"odd was":       {"todo", []progress.Ref{item}, acts.AnswerInput{Was: "TODO"}},
		"without words": {"reject", []progress.Ref{ref(t, "topic blog/posts/pages")}, acts.AnswerInput{}},
	} {
		_, err := o.decider("ann").Give(ctx, give.word, give.refs, give.s)
		if lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	if o.gate(item.String()).Since.IsZero() {
		t.Error("it does not wait any more")
	}
}

// An answer to a decision that changed is refused with the difference, and changes nothing.
// Changes of other units do not make a page stale.
//
// shows: PL-78
func TestStalePage(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	o.audited("blog/posts", "Paginate the index", "Cache the feed")
	o.planned("blog/comments", "app/models/comment.rb")
	stale := func(v acts.Verdict, err error) *progress.StaleError {
		t.Helper()
		must(t, err)
		var is *progress.StaleError
		if len(v.Done) != 0 || !errors.As(v.Err(), &is) || lockkeeper.CodeOf(v.Err()) != lockkeeper.CodeRefused {
			t.Fatalf("%+v", v)
		}
		return is
	}
	give := func(word string, seen progress.Decision) (acts.Verdict, error) {
		return o.decider("ann").Give(ctx, word, []progress.Ref{seen.Ref}, acts.AnswerInput{Seen: acts.Seen{seen.Ref: seen.Version}})
	}

	first, second, plan := o.gate("item blog/posts/i1"), o.gate("item blog/posts/i2"), o.gate("plan blog/comments")
	if first.Version == second.Version || first.Version == "" {
		t.Fatalf("versions %q and %q", first.Version, second.Version)
	}
	v, err := give("defer", second)
	must(t, err, v.Err())
	v, err = o.decider("bob").Give(ctx, "todo", []progress.Ref{first.Ref}, acts.AnswerInput{Seen: acts.Seen{first.Ref: first.Version}})
	must(t, err, v.Err()) // another item was decided meanwhile
	is := stale(give("reject", first))
	if is.Now != nil || is.Became != "it is TODO, by bob" {
		t.Errorf("%+v", is)
	}
	wantText(t, is.Error(), "item blog/posts/i1 is not what you saw: it is TODO, by bob; next: ")

	v, err = acts.SetTargets{Batch: "b2", Paths: []string{"app/models/other.rb"}, Seen: acts.Seen{plan.Ref: plan.Version}}.Do(ctx, o.decider("bob"), "blog/comments")
	must(t, err, v.Err())
	is = stale(give("approve", plan))
	if is.Now == nil || is.Now.Version == plan.Version || !slices.ContainsFunc(is.Changed, func(f progress.Fact) bool { return f.Name == "b2" && strings.Contains(f.Value, "app/models/other.rb") }) {
		t.Errorf("%+v", is)
	}
	if slices.ContainsFunc(is.Changed, func(f progress.Fact) bool { return f.Name == "b1" }) {
		t.Errorf("b1 is as it was: %+v", is.Changed)
	}
	stale(acts.Merge{Into: "b1", From: "b2", Seen: acts.Seen{plan.Ref: plan.Version}}.Do(ctx, o.decider("ann"), "blog/comments"))
	plan = *is.Now // the person reloads the page
	v, err = give("approve", plan)
	must(t, err, v.Err())
	is = stale(give("approve", plan))
	wantText(t, is.Error(), "it is approved, by ann")
}

// A new diff has a new version, even if it has the same files.
//
// shows: PL-78
func TestStaleReview(t *testing.T) {
	o := newOffice(t, 0)
	ctx, b := t.Context(), o.book()
	const unit = "blog/posts"
	o.planned(unit, "app/models/post.rb")
	must(t, b.ApprovePlan(ctx, unit, "ann"))
	file := func(text string) []flow.File {
		sum, err := b.Keep(ctx, unit, "b1", strings.NewReader(text))
		must(t, err)
		return []flow.File{{Path: "app/models/post.rb", New: lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sum}}}
	}
	review := func(text string) progress.Decision {
		files := file(text)
		o.verified(unit, "b1", files)
		must(t, b.PutReview(ctx, unit, "b1", files))
		return o.gate("review blog/posts/b1")
	}
	seen := review("one\n")
	must(t, b.RedoBatch(ctx, unit, "b1", "apply", "bob"))
	now := review("two\n")
	v, err := o.decider("ann").Give(ctx, "approve", []progress.Ref{seen.Ref}, acts.AnswerInput{Seen: acts.Seen{seen.Ref: seen.Version}})
	must(t, err)
	var is *progress.StaleError
	if !errors.As(v.Err(), &is) || is.Now.Version != now.Version || len(is.Changed) != 1 || is.Changed[0].Name != "app/models/post.rb" {
		t.Fatalf("%+v", v)
	}
	v, err = o.decider("ann").Give(ctx, "approve", []progress.Ref{seen.Ref}, acts.AnswerInput{Seen: acts.Seen{now.Ref: now.Version}})
	must(t, err, v.Err())
}

// If many people answer the same decision, one succeeds, and the others learn who it was.
//
// shows: PL-78
func TestOneOfManyAnswers(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	o.audited("blog/posts", "Paginate the index")
	g := o.gate("item blog/posts/i1")
	const people = 8
	verdicts, errs := make([]acts.Verdict, people), make([]error, people)
	var all sync.WaitGroup
	for i := range people {
		d := o.decider(string(rune('a' + i)))
		all.Go(func() {
			word := []string{"todo", "defer", "reject"}[i%3]
			verdicts[i], errs[i] = d.Give(ctx, word, []progress.Ref{g.Ref}, acts.AnswerInput{Seen: acts.Seen{g.Ref: g.Version}})
		})
	}
	all.Wait()
	must(t, errs...)
	given := 0
	for _, v := range verdicts {
		var is *progress.StaleError
		if given += len(v.Done); len(v.Done) == 0 && (!errors.As(v.Err(), &is) || !strings.HasPrefix(is.Became, "it is ")) {
			t.Errorf("%v", v.Err())
		}
	}
	if given != 1 {
		t.Errorf("%d answers were given", given)
	}
}

// Suggested commands name the flow if the default is another flow.
//
// shows: GP-25
func TestCommandsNameTheFlow(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	command := func(name string, words ...string) string {
		d, err := acts.Open(ctx, o.app, name, person("ann"))
		must(t, err)
		return d.Command(words...)
	}
	_, err := conduct.NewRun(ctx, o.app, "screens", "")
	must(t, err)
	for _, c := range []struct{ flow, want string }{
		{"", "lockkeeper decide show plan blog"}, {"screens", "lockkeeper decide show plan blog"}, {"controllers", "lockkeeper decide show plan blog --flow controllers"},
	} {
		if got := command(c.flow, "decide", "show", "plan blog"); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
	must(t, conduct.EndRun(ctx, o.app)) // from here on, controllers is the default
	if got := command("", "run", "--retry"); got != "lockkeeper run --retry --flow screens" {
		t.Errorf("%q", got)
	}
	if got := command("", "decide"); got != "lockkeeper decide" {
		t.Errorf("%q", got)
	}
}

// Screens can be excluded only in the flow that has screens.
//
// shows: GP-16
func TestExcludeInItsFlow(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	exclude := acts.Exclude{Screen: "Post Editor", Why: "it is rewritten"}
	if _, err := exclude.Do(ctx, o.decider("ann"), "blog/posts"); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("%v", err)
	}
	d, err := acts.Open(ctx, o.app, "screens", person("ann"))
	must(t, err)
	if _, err := (acts.Exclude{Screen: "Post Editer", Why: "it is rewritten"}).Do(ctx, d, "blog/posts"); err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("%v", err)
	}
	v, err := exclude.Do(ctx, d, "blog/posts")
	must(t, err, v.Err())
	v, err = acts.Include{Screen: "Post Editor"}.Do(ctx, d, "blog/posts")
	must(t, err, v.Err())
}
