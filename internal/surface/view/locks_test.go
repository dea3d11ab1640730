package view_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// submitted returns an item that belongs to no flow.
func submitted(name string, locks ...lockkeeper.Lock) sched.ItemSpec {
	return sched.ItemSpec{Workflow: name, Phase: "job", Job: true, Locks: locks, By: ada}
}

// waits adds a waiting request for files.
func (s *scene) waits(holder string, paths ...string) {
	s.t.Helper()
	req := lockkeeper.Request{Holder: holder}
	for _, path := range paths {
		req.Locks = append(req.Locks, write(path))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	events, err := s.app.Locks.Events(ctx, store.EventQuery{Limit: 1, Latest: true})
	must(s.t, err)
	go func() {
		defer close(done)
		s.app.Locks.Acquire(ctx, req, time.Hour) // waits until the test ends
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
	q, err := job.Open(s.app)
	must(s.t, err)
	f, err := q.Feed(ctx)
	must(s.t, err)
	defer f.Close()
	for after := events[0].Seq; ; {
		list, err := f.Next(ctx, after)
		must(s.t, err)
		for _, ev := range list {
			if after = ev.Seq; ev.Kind == lockkeeper.EventWaiting && ev.Holder == holder {
				return
			}
		}
	}
}

// listed checks that the list of items says what each waits for, and finds items. The first item blocks the second.
func (s *scene) listed(items []*lockkeeper.Item) {
	s.t.Helper()
	find := func(q view.ItemsQuery) (names string) {
		s.t.Helper()
		v, err := s.look.Items(s.t.Context(), q)
		must(s.t, err)
		for _, it := range v.Items {
			names += it.Name + " "
		}
		return names
	}
	v, err := s.look.Items(s.t.Context(), view.ItemsQuery{})
	must(s.t, err)
	blocked, running := v.Items[0], v.Items[1]
	if blocked.ID != items[1].ID || len(blocked.Waits) != 1 || blocked.Waits[0].Blocker == nil || blocked.Waits[0].Blocker.Item != items[0].ID || blocked.Waits[0].Blocker.Path != "lib/x.rb" || blocked.Worked != 0 {
		s.t.Errorf("the blocked one is %+v", blocked)
	}
	if len(running.Waits) != 0 || running.State != "running" {
		s.t.Errorf("the running one is %+v", running)
	}
	for want, q := range map[string]view.ItemsQuery{"deploy build ": {}, "deploy ": {Text: "DEPLOY"}, "build ": {Text: items[0].ID, Phase: "job"}, "": {Unit: "build"}} {
		if got := find(q); got != want {
			s.t.Errorf("%+v finds %q", q, got)
		}
	}
}

// The wait tree and the wait graph contain both requests and queued items.
// shows: SW-84 PL-94
func TestWhoWaitsForWhom(t *testing.T) {
	s := newScene(t, "")
	s.hold("otter", "session", "app/a.rb")
	s.hold("heron", "session", "app/b.rb")
	s.waits("finch", "app/a.rb")
	s.waits("robin", "app/a.rb", "app/b.rb")
	items := s.work(1, 1, submitted("build", write("lib/x.rb")), submitted("deploy", write("lib/x.rb")))
	v, err := s.look.Locks(t.Context())
	must(t, err)
	if len(v.Held) != 3 || len(v.Waiting) != 2 || len(v.Queued) != 1 || len(v.Stale) != 0 {
		t.Fatalf("held %d, waiting %d, queued %d, stale %d", len(v.Held), len(v.Waiting), len(v.Queued), len(v.Stale))
	}
	if got := v.Queued[0]; got.Item != items[1].ID || got.Behind[0].Item != items[0].ID || got.Behind[0].Name != "build" {
		t.Errorf("the queued one is %+v", got)
	}
	s.listed(items)
	want := "otter(finch(robin) robin) heron(robin) build(deploy)"
	if got := spell(v.Tree); got != want {
		t.Errorf("the tree is %s, want %s", got, want)
	}
	if len(v.Graph.Nodes) != 6 || len(v.Graph.Edges) != 5 {
		t.Errorf("the graph is %+v", v.Graph)
	}
	again := 0
	var count func([]view.WaitNode)
	count = func(list []view.WaitNode) {
		for _, n := range list {
			if n.Again {
				again++
			}
			count(n.Behind)
		}
	}
	if count(v.Tree); again != 2 {
		t.Errorf("%d are listed in full elsewhere", again)
	}
}

// spell formats a tree on one line.
func spell(list []view.WaitNode) (text string) {
	for i, n := range list {
		if i > 0 {
			text += " "
		}
		text += n.Name
		if len(n.Behind) > 0 {
			text += "(" + spell(n.Behind) + ")"
		}
	}
	return text
}

// Stale grants are listed separately, with the conditions for their release. Named resources are shown by name.
// shows: LM-21 LM-43 CF-14
func TestStaleGrantsAndResources(t *testing.T) {
	s := newScene(t, "policies: {author: {ttl: 1s, heartbeat: 100ms}, dal: {ttl: 1s, grace: 1h, heartbeat: 100ms}}\n")
	ctx := t.Context()
	take := func(holder, policy, resource string, kind lockkeeper.Kind) string {
		g, err := s.app.Locks.TryAcquire(ctx, lockkeeper.Request{Holder: holder, Policy: policy, Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: resource, Kind: kind}, Mode: lockkeeper.Write}}})
		must(t, err)
		return g.ID
	}
	book := take("CLI-12345", "author", "Chapter_01", lockkeeper.Node)
	dal := take("worker-1", "dal", "project/p1/map/m1", lockkeeper.Tree)
	e, err := s.app.Locks.Request(ctx, dal)
	must(t, err)
	wait, cancel := context.WithDeadline(ctx, e.ExpiresAt.Add(10*time.Millisecond))
	defer cancel()
	<-wait.Done() // the lease follows the store's clock
	v, err := s.look.Locks(ctx)
	must(t, err)
	if len(v.Stale) != 2 || len(v.Held) != 0 {
		t.Fatalf("stale %+v, held %+v", v.Stale, v.Held)
	}
	for _, st := range v.Stale {
		force := st.Acts[slices.IndexFunc(st.Acts, func(a view.Act) bool { return a.Name == "force-release" })]
		switch st.ID {
		case book:
			if len(st.Conditions) != 2 || force.Refused != "" {
				t.Errorf("the chapter: %+v", st)
			}
		case dal: // its grace period has not ended
			if len(st.Conditions) != 4 || force.Refused == "" {
				t.Errorf("the map: %+v", st)
			}
		}
	}
	if len(v.Resources) != 2 || v.Resources[0].Resource != "Chapter_01" || v.Resources[0].Instance != "CLI-12345" || !v.Resources[0].Stale {
		t.Errorf("the resources are %+v", v.Resources)
	}
	n, err := s.look.Now(ctx, 0)
	must(t, err)
	if len(n.Stuck) != 2 || n.Stuck[0].Kind != view.StuckStale {
		t.Errorf("stuck are %+v", n.Stuck)
	}
}

// The state contains all of thousands of grants, and the page contains only the first of them. A
// second read shows the changes.
func TestManyGrants(t *testing.T) {
	s := newScene(t, "")
	const n = 2_000
	var ids []string
	for i := range n {
		ids = append(ids, s.hold(fmt.Sprint("agent-", i), "session", fmt.Sprintf("app/%d/a.rb", i), fmt.Sprintf("app/%d/b.rb", i)))
	}
	for round := range 2 {
		st, err := s.look.State(t.Context())
		must(t, err)
		if len(st.Locks.ActiveGrants) != n-round {
			t.Errorf("%d grants", len(st.Locks.ActiveGrants))
		}
		v, err := s.look.Locks(t.Context())
		must(t, err)
		if len(v.Held)+v.More != n-round || v.More == 0 {
			t.Errorf("%d grants and %d more", len(v.Held), v.More)
		}
		if round == 0 {
			must(t, s.app.Locks.ForceRelease(t.Context(), ids[n/2], ada, "for the test"))
		}
	}
	n2, err := s.look.Now(t.Context(), 1)
	must(t, err)
	if len(n2.Changes.Counts) != 1 || n2.Changes.Counts[0] != (view.Count{What: "forced", Count: 1}) {
		t.Errorf("the changes are %+v", n2.Changes)
	}
}
