package view_test

import (
	"slices"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/job"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
)

func act(t *testing.T, acts []view.Act, name string) view.Act {
	t.Helper()
	at := slices.IndexFunc(acts, func(a view.Act) bool { return a.Name == name })
	if at < 0 {
		t.Fatalf("there is no act %s among %+v", name, acts)
	}
	return acts[at]
}

// A failed item can be retried, and says why it failed. An item that comes after it says that it
// never starts.
// shows: PL-80
func TestFailedItems(t *testing.T) {
	s := newScene(t, "")
	ctx := t.Context()
	_, u := s.planned("blog/users", "Throttle")
	orders := []sched.ItemSpec{batchOrder(u, "b1", write("app/a.rb")), submitted("deploy", write("lib/x.rb"))}
	orders[1].After = []string{orders[0].Key}
	s.hold("otter", "session", "app/a.rb", "lib/x.rb")
	items := s.work(0, 1, orders...)
	q, err := job.Open(s.app)
	must(t, err)
	_, err = q.Cancel(ctx, items[0].ID, ada, "it is not wanted")
	must(t, err)
	s.whole()
	failed, err := s.look.Item(ctx, items[0].ID)
	must(t, err)
	if failed.State != "canceled" || act(t, failed.Acts, "retry").Refused != "" || act(t, failed.Acts, "cancel").Refused == "" || failed.Why.Item.Failure == nil {
		t.Errorf("the failed one is %+v", failed)
	}
	behind, err := s.look.Item(ctx, "deploy")
	must(t, err)
	if behind.Failed == nil || behind.Failed.Item != items[0].ID || act(t, behind.Acts, "retry").Refused == "" || act(t, behind.Acts, "cancel").Refused != "" {
		t.Errorf("the one behind it is %+v", behind)
	}
	n, err := s.look.Now(ctx, 0)
	must(t, err)
	if len(n.Failed) != 1 || n.Failed[0].Name() != "blog/users/b1" {
		t.Errorf("failed are %+v", n.Failed)
	}
	row := s.row("blog/users")
	if row.Status != "error" || row.Batches[0].Mark != view.MarkFailed || row.Batches[0].Error == "" {
		t.Errorf("the row is %+v", row)
	}
	list, err := s.look.Items(ctx, view.ItemsQuery{Status: lockkeeper.ItemError})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].State != "canceled" || list.Queue.Failed != 0 || list.Queue.Canceled != 1 {
		t.Errorf("the list is %+v", list)
	}
	st, err := s.look.State(ctx)
	must(t, err)
	if w := st.Workflows["blog/users"]; w.Status != "error" || w.Error == "" {
		t.Errorf("the workflow is %+v", w)
	}
}

// An item that no worker takes is reported, and so is an item whose worker is gone.
func TestItemWithoutAWorker(t *testing.T) {
	s := newScene(t, "")
	ctx := t.Context()
	q, err := job.Open(s.app)
	must(t, err)
	items, err := q.Enqueue(ctx, submitted("build", write("lib/a.rb")), submitted("deploy", write("lib/b.rb")))
	must(t, err)
	n, err := s.look.Now(ctx, 0)
	must(t, err)
	if len(n.Stuck) != 1 || n.Stuck[0].Kind != view.StuckUnclaimed || n.Stuck[0].Item != items[0].ID {
		t.Errorf("stuck are %+v", n.Stuck)
	}
	taken, err := q.Dispatch(ctx, lockkeeper.Worker{ID: "there/gone", Node: "there"})
	must(t, err)
	n, err = s.look.Now(ctx, 0)
	must(t, err)
	lost := slices.IndexFunc(n.Stuck, func(st view.Stuck) bool { return st.Kind == view.StuckLost })
	if lost < 0 || n.Stuck[lost].Item != taken.Item.ID {
		t.Errorf("stuck are %+v", n.Stuck)
	}
	it, err := s.look.Item(ctx, taken.Item.ID)
	must(t, err)
	if !it.Lost || it.Worker != nil {
		t.Errorf("the item is %+v", it)
	}
	must(t, taken.Return(ctx, "the test is over"))
}

// Changes lists what happened since the last visit, and whether the log reaches back to it.
func TestChangesSince(t *testing.T) {
	s := newScene(t, "")
	ctx := t.Context()
	for range 3 {
		must(t, conduct.RecordDecision(ctx, s.app, ada, "todo item blog/posts/i1"))
	}
	first, err := s.look.Now(ctx, 0)
	must(t, err)
	if len(first.Changes.Counts) != 0 || len(first.Changes.Latest) != 3 {
		t.Errorf("at first: %+v", first.Changes)
	}
	must(t, conduct.RecordDecision(ctx, s.app, ada, "defer item blog/posts/i2"))
	for range 2 {
		second, err := s.look.Now(ctx, first.Seq)
		must(t, err)
		if c := second.Changes; len(c.Counts) != 1 || c.Counts[0] != (view.Count{What: "decided", Count: 1}) || len(c.Latest) != 1 || c.Latest[0].Actor != ada || c.Forgotten || c.Cut || c.Since.IsZero() {
			t.Errorf("since then: %+v", c)
		}
	}
	future, err := s.look.Now(ctx, first.Seq+1_000_000)
	must(t, err)
	if c := future.Changes; len(c.Counts) != 0 || len(c.Latest) != 0 {
		t.Errorf("since what is still to come: %+v", c)
	}
}
