package view_test

import (
	"slices"
	"testing"

	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
)

// Each running item has a lane, and keeps it. Work that is blocked by locks is counted apart from
// work that waits for other work.
func TestLanesAndWaits(t *testing.T) {
	s := newScene(t, "")
	ctx := t.Context()
	_, u := s.planned("blog/users", "Throttle")
	first, blocked, after := batchOrder(u, "b1", write("app/a.rb")), submitted("build", write("lib/x.rb")), submitted("deploy", write("lib/y.rb"))
	first.Pools, after.After = []string{sched.PoolAgent}, []string{first.Key}
	s.hold("otter", "session", "lib/x.rb")
	items := s.work(1, 1, first, blocked, after)
	for range 2 {
		n, err := s.look.Now(ctx, 0)
		must(t, err)
		busy := slices.DeleteFunc(slices.Clone(n.Lanes), func(l view.SlotLane) bool { return l.Work == nil })
		if len(busy) != 1 || busy[0].ID != "agent-1" || busy[0].Work.Item != items[0].ID || busy[0].Work.Unit != "blog/users" || busy[0].Work.Part != "b1" || busy[0].Work.State != "running" {
			t.Errorf("the lanes are %+v", busy)
		}
		if n.Waiting != (view.QueueWaits{Locks: 1, After: 1}) {
			t.Errorf("the queue waits for %+v", n.Waiting)
		}
		at := slices.IndexFunc(n.Funnel, func(f view.FunnelStep) bool { return f.Phase == "apply" })
		if f := n.Funnel[at]; f.Counts != "batch" || f.Active != 1 || f.Total() != 1 {
			t.Errorf("the phase apply is %+v", f)
		}
		if p := n.Progress; p.Share <= 0 || p.Share >= 1 || p.Batches != 1 || p.Landed != 0 || !p.Assumed {
			t.Errorf("the progress is %+v", p)
		}
	}
}
