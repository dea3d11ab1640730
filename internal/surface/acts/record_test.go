package acts_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/facts"
	"lockkeeper/rescue"
	"lockkeeper/store"
)

// recorded returns the texts of people's acts in the event log.
func (o *office) recorded() (list []string) {
	o.t.Helper()
	events, err := o.app.Locks.Events(o.t.Context(), store.EventQuery{Limit: 1_000})
	must(o.t, err)
	for _, ev := range events {
		if ev.Kind == lockkeeper.EventDecided {
			list = append(list, ev.Actor.Name+": "+ev.Reason)
		}
	}
	return list
}

// The event log names the person who starts a run, stops it, or drops a rescued change.
//
// shows: GP-25
func TestWhoDidItIsRecorded(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	r := o.runs(newHearing())
	begun, err := r.Start(ctx, conduct.Options{Only: []string{"blog/posts"}, Wait: true, By: person("ann")})
	must(t, err, r.Stop(ctx, acts.StopOptions{Run: begun.Run, Now: true}, person("bob")))
	kept, err := o.app.Shelf().Put(ctx, rescue.Entry{Kind: rescue.Gap, Path: other, Holder: "blog/posts/b1", Reason: "coverage: not declared"}, strings.NewReader("kept\n"))
	must(t, err)
	if _, err := acts.DropRescued(ctx, o.app, kept.ID, person("cleo")); err != nil {
		t.Error(err)
	}
	if _, err := acts.DropRescued(ctx, o.app, kept.ID, person("cleo")); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("%v", err)
	}
	text := strings.Join(o.recorded(), "\n")
	wantText(t, text, "ann: run "+begun.Run+" of the flow controllers is started, of blog/posts", "bob: the run that ann started", "must stop at once",
		"cleo: rescued change "+kept.ID+" of "+other+" is dropped")
	if strings.Count(text, "cleo") != 1 {
		t.Errorf("what was not done is recorded:\n%s", text)
	}
}

// A redo of a plan that the person did not see is refused as stale. Adding an existing item
// and retrying an item that has not failed change nothing.
//
// shows: GP-25
func TestActsOnOldPages(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	o.planned(unit, model)
	seen := acts.Seen{ref(t, "plan "+unit): o.gate("plan " + unit).Version}
	_, err := acts.MoveItem{Item: "i2", To: "b1"}.Do(ctx, o.decider("bob"), unit)
	must(t, err)
	var stale *progress.StaleError
	v, err := acts.Redo{Phase: "batch_plan", Seen: seen}.Do(ctx, o.decider("ann"), unit)
	must(t, err)
	if len(v.Done) != 0 || !errors.As(v.Err(), &stale) || stale.Now == nil {
		t.Errorf("%+v: %v", v.Done, v.Err())
	}
	seen[ref(t, "plan "+unit)] = o.gate("plan " + unit).Version
	v, err = acts.Redo{Phase: "batch_plan", Seen: seen}.Do(ctx, o.decider("ann"), unit)
	must(t, err, v.Err())

	o.audited("blog/comments", "Fix it")
	own := acts.AddItem{Description: "Polish it"}
	for i, want := range []lockkeeper.Code{"", lockkeeper.CodeRefused} {
		v, err := own.Do(ctx, o.decider("ann"), "blog/comments")
		must(t, err)
		if got := lockkeeper.CodeOf(v.Err()); v.Err() != nil && got != want || len(v.Done) != 1-i {
			t.Errorf("%d: %+v: %v", i, v.Done, v.Err())
		}
	}
	if _, err := o.decider("ann").Retry(ctx, []string{"blog/comments"}, "again"); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("%v", err)
	}
}

// A WrongStatusError has the facts of every refusal.
func TestWrongStatusIsARefusal(t *testing.T) {
	err := &acts.WrongStatusError{Unit: "blog/posts", Status: "queued", Phase: "plan", Next: "wait"}
	if f := facts.Of(err); f["act"] != "start the phase plan of blog/posts" || f["reason"] != "it is queued" || f["next"] != "wait" {
		t.Errorf("%v", f)
	}
}

// Warnings of a run are reported, and shown until the next run. A person who saw one run cannot stop another.
func TestWarningsOfARun(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	h := newHearing()
	r := o.runs(h)
	if told := r.Now().Troubles("controllers"); len(told) != 0 {
		t.Errorf("before any run: %v", told)
	}
	o.audited("blog/comments", "Fix it")
	_, _, docs, err := conduct.OpenDocuments(o.app, "controllers")
	must(t, err, os.WriteFile(filepath.Join(docs.Unit("blog/comments").Dir(), flow.AuditFile), []byte("{"), 0o644))
	begun, err := r.Start(ctx, conduct.Options{Only: []string{"blog/comments"}, Wait: true, By: person("ann")})
	must(t, err)
	h.until(t, func(n run.News) bool { return n.Kind == run.NewsWarning })
	if err := r.Stop(ctx, acts.StopOptions{Run: "another", Now: true}, person("bob")); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "ann started another run") {
		t.Errorf("%v", err)
	}
	under := r.Now()
	must(t, r.Stop(ctx, acts.StopOptions{Run: begun.Run, Now: true}, person("ann")))
	for what, now := range map[string]acts.Running{"under way": under, "ended": r.Now()} {
		told := now.Troubles("controllers")
		if len(told) == 0 || len(now.Troubles("screens")) != 0 {
			t.Fatalf("%s: %v", what, told)
		}
		wantText(t, strings.Join(told, "\n"), "blog/comments: ", flow.AuditFile, "its phase runs again (")
	}
}
