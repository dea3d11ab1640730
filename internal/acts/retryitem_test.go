package acts_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/acts"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/pipeline"
	"lockkeeper/sched"
)

// Who retries one item of a unit retries nothing else that failed in it.
func TestRetryOfOneItem(t *testing.T) {
	o := newOffice(t, 0)
	ctx, by := t.Context(), person("ann")
	const unit = "blog/posts"
	o.planned(unit, "app/models/a.rb")
	must(t, o.book().ApprovePlan(ctx, unit, "ann"))
	u, err := o.book().Unit(ctx, unit)
	must(t, err)
	q, err := o.app.Queue()
	must(t, err)
	ended := make(chan lockkeeper.Item, 2)
	w, err := q.Start(ctx, sched.WorkerOptions{Slots: 2, Node: "here", Roots: []string{"flow/controllers"}, Ended: func(it lockkeeper.Item) { ended <- it },
		Run: func(context.Context, *sched.Job) error { return errors.New("it was red") }})
	must(t, err)
	order := func(batch, digest string) sched.Order {
		return sched.Order{Key: "controllers/blog%2Fposts/batch/" + batch + "@" + digest[:8], Workflow: unit + "/" + batch, Unit: string(flow.BatchUnit), Phase: "apply", Root: "flow/controllers", By: by}
	}
	items, err := q.Enqueue(ctx, order("b1", u.Batches[0].Digest), order("b2", u.Batches[1].Digest))
	must(t, err)
	<-ended
	<-ended
	must(t, w.Close())

	it, err := acts.RetryItem(ctx, o.app, items[0], "mind the locks", by)
	must(t, err)
	if it.Status != lockkeeper.ItemQueued {
		t.Errorf("the item is %s", it.Status)
	}
	failed, err := o.app.Failures(ctx, flow.Controllers().Name)
	must(t, err)
	if !slices.EqualFunc(failed, []string{items[1].ID}, func(f pipeline.Failure, id string) bool { return f.Item == id }) {
		t.Errorf("what failed is %+v, and should be the other item alone", failed)
	}
	if _, err := acts.RetryItem(ctx, o.app, it, "", by); err == nil {
		t.Error("what waits in the queue was retried")
	}
}
