package acts_test

import (
	"context"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/job"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/sched"
)

// An excluded batch is not attempted and no longer counts as failed; a batch after it is excluded with
// it. Including it brings both back, with what was queued.
func TestExcludeBatch(t *testing.T) {
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
	items, err := q.Enqueue(ctx, o.orderOf(unit, "b2"), o.orderOf(unit, "b1"))
	must(t, err)
	<-running
	d := o.decider("ann")
	if _, err := (acts.Exclude{Part: "b2", Why: "it runs"}).Do(ctx, d, unit); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("a running batch is excluded: %v", err)
	}
	v, err := acts.Exclude{Part: "b1", Why: "it needs a person"}.Do(ctx, d, unit)
	must(t, err, v.Err())
	wantText(t, v.Done[0].What, "excludes "+unit+"/b1 from runs")
	u, err := o.book().Unit(ctx, unit)
	must(t, err)
	b, _ := u.Batch("b1")
	if b.Status != flow.Excluded || b.Next != "" || b.Left != "apply" || b.Excluded.By != "ann" {
		t.Errorf("the batch is %+v", b)
	}
	failed, err := conduct.Failures(ctx, o.app, "controllers")
	must(t, err)
	it, err := q.Find(ctx, items[1].ID)
	must(t, err)
	if len(failed) != 0 || !it.IsCanceled() {
		t.Errorf("failed are %+v, and the item is %s", failed, it.Status)
	}
	if v, err := (acts.Exclude{Part: "b1", Why: "again"}).Do(ctx, d, unit); err != nil || v.Err() == nil {
		t.Errorf("it is excluded twice: %v", err)
	}
	v, err = acts.Include{Part: "b1"}.Do(ctx, d, unit)
	must(t, err, v.Err())
	u, err = o.book().Unit(ctx, unit)
	must(t, err)
	it, err = q.Find(ctx, items[1].ID)
	must(t, err)
	if b, _ := u.Batch("b1"); b.Next != "apply" || b.Excluded != nil || it.Status != lockkeeper.ItemQueued {
		t.Errorf("the batch is %+v, and the item is %s", b, it.Status)
	}
	must(t, w.Close())
}

// An excluded unit has nothing left to do and asks nothing, until it is included again.
func TestExcludeUnit(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	o.audited(unit, "Page them", "Cache them")
	d := o.decider("ann")
	v, err := acts.Exclude{Why: "it is replaced"}.Do(ctx, d, unit)
	must(t, err, v.Err())
	u, err := o.book().Unit(ctx, unit)
	must(t, err)
	if u.Status() != flow.Excluded || u.Phase() != "" || len(u.OpenDecisions()) != 0 {
		t.Errorf("the unit is %s in %q with %d decisions", u.Status(), u.Phase(), len(u.OpenDecisions()))
	}
	v, err = acts.Include{}.Do(ctx, d, unit)
	must(t, err, v.Err())
	if u, err = o.book().Unit(ctx, unit); err != nil || u.Phase() != "decide" || len(u.OpenDecisions()) != 2 {
		t.Errorf("the unit is in %q: %v", u.Phase(), err)
	}
}
