package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
)

var ben = lockkeeper.Actor{Name: "ben", Kind: lockkeeper.ActorPerson}

// queued enqueues an item and returns a function that requests its page.
func (r *real) queued(o sched.ItemSpec) (q *job.Queue, it *lockkeeper.Item, page func() *element) {
	r.Helper()
	q, err := job.Open(r.App)
	must(r.T, err)
	items, err := q.Enqueue(r.Context(), o)
	must(r.T, err)
	return q, items[0], func() *element { return r.page("/item/" + items[0].ID) }
}

// A page that showed an item as queued cannot cancel it once it runs.
func TestCancelOfWhatRunsByNow(t *testing.T) {
	ctx := t.Context()
	r := newReal(t)
	q, it, page := r.queued(sched.ItemSpec{Workflow: "make", Job: true, Command: []string{"true"}, By: ben})
	waiting := formOf(page(), "/do/cancel")
	job, err := q.Dispatch(ctx, lockkeeper.Worker{ID: "here/1", Node: "here"})
	must(t, err)
	if why := r.refused(waiting, "", http.StatusConflict); !strings.Contains(why, "it has started since the page was loaded") {
		t.Error(why)
	}
	running := formOf(page(), "/do/cancel")
	must(t, job.Return(ctx, "it is not its turn"))
	if it, err = q.Find(ctx, it.ID); err != nil || it.Status != lockkeeper.ItemQueued {
		t.Fatalf("%+v: %v", it, err)
	}
	job, err = q.Dispatch(ctx, lockkeeper.Worker{ID: "here/1", Node: "here"})
	must(t, err)
	if said := r.done(running, "", "reason", "it hangs"); !strings.Contains(said, "Its processes were stopped") {
		t.Error(said)
	}
	_ = job.Return(ctx, "it was canceled") // the job may already be canceled
}

// A job has no agent that could read a note, so the form has no field for it and a note is refused.
func TestRetryOfAJob(t *testing.T) {
	r := newReal(t)
	q, it, page := r.queued(sched.ItemSpec{Workflow: "make", Job: true, Command: []string{"true"}, By: ben})
	_, err := q.Cancel(t.Context(), it.ID, ben, "planned twice")
	must(t, err)
	form := formOf(page(), "/do/retry")
	for _, f := range form.fields("") {
		if f[0] == "note" {
			t.Error("a note is asked for")
		}
	}
	if why := r.refused(form, "", http.StatusBadRequest, "note", "look again"); !strings.Contains(why, "no agent reads it") {
		t.Error(why)
	}
	if said := r.done(form, ""); !strings.Contains(said, "queued again") {
		t.Error(said)
	}
}

// A page that shows an outdated batch cannot redo a phase of it.
func TestRedoOfABatchThatWentOn(t *testing.T) {
	ctx := t.Context()
	r := newReal(t)
	const unit = "blog/posts"
	book := projecttest.Tracker(t, r.App)
	projecttest.Planned(t, book, unit, "app/models/a.rb")
	must(t, book.ApprovePlan(ctx, unit, "ben"))
	u, err := book.Unit(ctx, unit)
	must(t, err)
	order := func(at int) sched.ItemSpec {
		b := u.Batches[at]
		return sched.ItemSpec{Key: "controllers/" + documents.KeyName(unit) + "/batch/" + b.ID + "@" + b.Digest[:8], Workflow: unit + "/" + b.ID, Unit: string(flow.BatchUnit), Phase: "apply", Root: "flow/controllers", By: ben}
	}
	running, next := make(chan string, 2), make(chan struct{})
	q, err := job.Open(r.App)
	must(t, err)
	w, err := q.Start(ctx, sched.WorkerOptions{Slots: 1, Node: "here", Roots: []string{"flow/controllers"}, Run: func(ctx context.Context, job *sched.Job) error {
		running <- job.Item.ID
		select {
		case <-next:
			return nil
		case <-ctx.Done():
			return &sched.LaterError{Reason: "the test is over"}
		}
	}})
	must(t, err)
	r.queued(order(1)) // takes the only slot
	<-running
	_, it, page := r.queued(order(0))
	old := formOf(page(), "/do/redo")
	sum, err := book.Keep(ctx, unit, "b1", strings.NewReader("one\n"))
	must(t, err)
	files := []flow.File{{Path: "app/models/a.rb", New: lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sum}}}
	projecttest.Verified(t, book, unit, "b1", files)
	if why := r.refused(old, "", http.StatusConflict); !strings.Contains(why, "is not what you saw: the batch is ") {
		t.Error(why)
	}
	must(t, book.PutReview(ctx, unit, "b1", files))
	reviewed := formOf(page(), "/do/redo", "ref", "review "+unit+"/b1")
	if reviewed == nil || formOf(page(), "/do/redo", "ref", "- review") != nil {
		t.Fatal("the page does not say which review it shows")
	}
	must(t, book.ReturnReview(ctx, unit, "b1", []string{"shorter"}, "ben"))
	if why := r.refused(reviewed, "", http.StatusConflict); !strings.Contains(why, "is not what you saw") {
		t.Error(why)
	}
	now := formOf(page(), "/do/redo")
	next <- struct{}{}
	if id := <-running; id != it.ID {
		t.Fatalf("%s runs", id)
	}
	if why := r.refused(now, "", http.StatusConflict); !strings.Contains(why, "wait until item "+it.ID) {
		t.Error(why)
	}
	must(t, w.Close())
	if said := r.done(now, "", "phase", "apply", "note", " Keep the old route.\r\nAdd a test. "); !strings.Contains(said, "repeats the phase") {
		t.Error(said)
	}
	plan := formOf(r.page("/decide?"+url.Values{"ref": {"plan " + unit}}.Encode()), "/do/redo")
	if said := r.done(plan, "", "phase", "batch_plan", "note", "One batch for each screen."); !strings.Contains(said, "repeats the phase batch_plan") {
		t.Error(said)
	}
	u, err = book.Unit(ctx, unit)
	must(t, err)
	for batch, want := range map[string]progress.Note{"b1": {Phase: "apply", Text: "Keep the old route.\r\nAdd a test."}, "": {Phase: "batch_plan", Text: "One batch for each screen."}} {
		phase, _ := flow.Default().Phase(want.Phase)
		if notes := u.Notes(batch, phase); len(notes) != 1 || notes[0].Text != want.Text || notes[0].By != "ann" {
			t.Errorf("the agent of %s gets %+v", want.Phase, notes)
		}
	}
}

// The page of a run shows its warnings, and its stop button stops no other run. A detail page of
// a run links to the previous and the next one.
func TestPageOfARun(t *testing.T) {
	ctx := t.Context()
	r := newReal(t)
	const unit = "blog/comments"
	projecttest.Audited(t, projecttest.Tracker(t, r.App), unit, "Fix it")
	_, _, docs, err := conduct.OpenDocuments(r.App, "controllers")
	must(t, err, os.WriteFile(filepath.Join(docs.Unit(unit).Dir(), flow.AuditFile), []byte("{"), 0o644))
	_, err = r.Runs.Start(ctx, conduct.Options{Flow: "controllers", Only: []string{unit}, Wait: true, By: ben})
	must(t, err)
	stop := formOf(r.page("/run"), "/do/stop")
	if why := r.refused(stop, "", http.StatusConflict, "run", "another", "now", "1"); !strings.Contains(why, "ben started another run") {
		t.Error(why)
	}
	for !strings.Contains(r.page("/run").words(), "its phase runs again") {
		if ctx.Err() != nil {
			t.Fatal("the page never shows what the run warns of")
		}
		time.Sleep(10 * time.Millisecond) // no event reports a warning, so poll
	}
	r.done(stop, "", "now", "1")
	tl, err := r.View.Timeline(ctx, view.TimelineQuery{})
	must(t, err)
	whole := tl.Over.Sub(tl.Began)
	at := func(part time.Duration) string { return tl.Began.Add(whole * part / 100).Format(time.RFC3339Nano) }
	window := "/timeline?" + url.Values{"from": {at(49)}, "to": {at(51)}}.Encode()
	if text := r.page(window).words(); !strings.Contains(text, "Earlier") || !strings.Contains(text, "Later") {
		t.Errorf("from the middle nothing leads on: %s", text)
	}
}

// An act sent without scripts gets a full page with the number of open decisions.
func TestActWithoutScripts(t *testing.T) {
	r := newReal(t)
	projecttest.Audited(t, projecttest.Tracker(t, r.App), "blog/posts", "Fix it", "Polish it")
	ask := httptest.NewRequest(http.MethodPost, "/do/answer", strings.NewReader(url.Values{"flow": {"controllers"}, "ref": {"- item blog/posts/i1"}, "word": {"todo"}}.Encode()))
	ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := send(t, r.Dashboard, access.Operator, ask)
	if text := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(text, `1<span class="sr"> waiting`) || strings.Contains(text, `name="lockkeeper-seq" content="0"`) {
		t.Errorf("%d: %s", w.Code, text)
	}
}
