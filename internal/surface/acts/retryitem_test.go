package acts_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/sched"
)

// orderOf returns an item for a batch of a planned unit, as a run enqueues it.
func (o *office) orderOf(unit, batch string) sched.ItemSpec {
	o.t.Helper()
	u, err := o.book().Unit(o.t.Context(), unit)
	must(o.t, err)
	b, _ := u.Batch(batch)
	return sched.ItemSpec{Key: "controllers/" + documents.KeyName(unit) + "/batch/" + batch + "@" + b.Digest[:8], Workflow: unit + "/" + batch, Unit: string(flow.BatchUnit), Phase: "apply",
		Root: "flow/controllers", By: person("ann")}
}

// A unit with a running item cannot be redone, because that would move its documents.
func TestNoRedoOfWhatRuns(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	o.planned(unit, "app/models/a.rb")
	must(t, o.book().ApprovePlan(ctx, unit, "ann"))
	q, err := job.Open(o.app)
	must(t, err)
	running := make(chan string, 1)
	w, err := q.Start(ctx, sched.WorkerOptions{Slots: 1, Node: "here", Roots: []string{"flow/controllers"}, Run: func(ctx context.Context, job *sched.Job) error {
		running <- job.Item.ID
		<-ctx.Done()
		return &sched.LaterError{Reason: "the test is over"}
	}})
	must(t, err)
	items, err := q.Enqueue(ctx, o.orderOf(unit, "b1"), o.orderOf(unit, "b2"))
	must(t, err)
	if id := <-running; id != items[0].ID {
		t.Fatalf("%s runs", id)
	}
	d := o.decider("ann")
	redo := map[string]func() (acts.Verdict, error){
		unit:         func() (acts.Verdict, error) { return acts.Redo{Phase: "batch_plan"}.Do(ctx, d, unit) },
		unit + "/b1": func() (acts.Verdict, error) { return acts.Redo{Batch: "b1", Phase: "apply"}.Do(ctx, d, unit) },
	}
	for name, do := range redo {
		_, err := do()
		var status *acts.WrongStatusError
		if !errors.As(err, &status) || status.Unit != name || status.Status != string(lockkeeper.ItemDispatched) {
			t.Fatalf("%s: %v", name, err)
		}
		wantText(t, status.Next, "lockkeeper job cancel "+items[0].ID)
	}
	v, err := acts.Redo{Batch: "b2", Phase: "apply"}.Do(ctx, d, unit) // this batch waits for its turn
	must(t, err, v.Err())
	must(t, w.Close())
	for _, name := range []string{unit + "/b1", unit} {
		v, err := redo[name]()
		must(t, err, v.Err())
	}
}

// A retry of one item does not retry other failed items of its unit.
func TestRetryOfOneItem(t *testing.T) {
	o := newOffice(t, 0)
	ctx, by := t.Context(), person("ann")
	o.planned(unit, "app/models/a.rb")
	must(t, o.book().ApprovePlan(ctx, unit, "ann"))
	q, err := job.Open(o.app)
	must(t, err)
	ended := make(chan lockkeeper.Item, 2)
	w, err := q.Start(ctx, sched.WorkerOptions{Slots: 2, Node: "here", Roots: []string{"flow/controllers"}, OnEnd: func(it lockkeeper.Item) { ended <- it },
		Run: func(context.Context, *sched.Job) error { return errors.New("it was red") }})
	must(t, err)
	items, err := q.Enqueue(ctx, o.orderOf(unit, "b1"), o.orderOf(unit, "b2"))
	must(t, err)
	<-ended
	<-ended
	must(t, w.Close())

	it, err := acts.RetryItem(ctx, o.app, items[0], "mind the locks", by)
	must(t, err)
	if it.Status != lockkeeper.ItemQueued {
		t.Errorf("the item is %s", it.Status)
	}
	failed, err := conduct.Failures(ctx, o.app, flow.Controllers().Name)
	must(t, err)
	if !slices.EqualFunc(failed, []string{items[1].ID}, func(f run.Failure, id string) bool { return f.Item == id }) {
		t.Errorf("what failed is %+v, and should be the other item alone", failed)
	}
	if _, err := acts.RetryItem(ctx, o.app, it, "", by); err == nil {
		t.Error("what waits in the queue was retried")
	}
}
