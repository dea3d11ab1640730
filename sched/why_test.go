package sched_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/sched"
)

// Why returns the blockers of an item, how much longer they block it, and when it may start.
//
// shows: SW-54 SW-55 CF-18
func TestWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{Limits: sched.Limits{Agents: 1, API: 1, Tests: 1, Jobs: 1, CPU: 1, JobsPerProject: 1, MapsPerProject: 1}})
		agent := []string{sched.PoolAgent}
		var done *lockkeeper.Item
		for range 3 {
			done = y.enqueue(sched.ItemSpec{Workflow: "before", Phase: "apply"})
			job := y.claim()
			time.Sleep(10 * time.Minute)
			y.finish(job, nil)
		}
		y.enqueue(sched.ItemSpec{Workflow: "sessions/b1", Phase: "apply", Locks: writes("concerns/authentication.rb"), Pools: agent})
		running := y.claim()
		must(t, running.Note(t.Context(), "fixing tests 2/2"))
		first := y.enqueue(sched.ItemSpec{Workflow: "first", Phase: "apply", Locks: writes("concerns/authentication.rb")})
		second := y.enqueue(sched.ItemSpec{Workflow: "posts/b2", Key: "b2", Phase: "apply", Locks: writes("concerns/authentication.rb")})
		slot := y.enqueue(sched.ItemSpec{Workflow: "slot", Phase: "apply", Pools: agent})
		later := y.enqueue(sched.ItemSpec{Workflow: "later", Phase: "apply", After: []string{first.ID}})
		y.claim()
		time.Sleep(4 * time.Minute)
		why := func(name string) *sched.Explanation {
			e, err := y.queue.Why(t.Context(), name)
			must(t, err)
			return e
		}
		e := why("b2")
		if e.Item.ID != second.ID || e.Position != 2 || len(e.Locks) != 1 || len(e.Slots) != 0 {
			t.Fatalf("explanation %+v", e)
		}
		if l := e.Locks[0]; l.BlockingPath != "concerns/authentication.rb" || l.By == nil || l.By.Workflow != "sessions/b1" || l.By.Note != "fixing tests 2/2" || l.Left != 6*time.Minute {
			t.Errorf("lock %+v, by %+v", l, l.By)
		}
		if want := time.Now().Add(16 * time.Minute); !e.StartsAt.Equal(want) {
			t.Errorf("it starts at %s, not %s", e.StartsAt, want)
		}
		if e := why("posts/b2"); e.Item.ID != second.ID {
			t.Errorf("by its name: %+v", e.Item)
		}
		if e := why(slot.ID); len(e.Slots) != 1 || e.Slots[0] != (sched.SlotWait{Pool: sched.PoolAgent, Taken: 1, Limit: 1}) || !e.StartsAt.Equal(time.Now().Add(6*time.Minute)) {
			t.Errorf("explanation %+v", e)
		}
		if e := why(later.ID); len(e.After) != 1 || e.After[0].ID != first.ID || !e.StartsAt.IsZero() {
			t.Errorf("explanation %+v", e)
		}
		if e := why(done.ID); e.Position != 0 || e.Item.Status != lockkeeper.ItemCompleted {
			t.Errorf("explanation %+v", e)
		}
		wanting, err := y.queue.QueuedFor(t.Context(), "concerns/authentication.rb")
		if err != nil || len(wanting) != 2 || wanting[0].ID != first.ID {
			t.Errorf("wanted by %v, %v", wanting, err)
		}
		time.Sleep(7 * time.Minute)
		if e := why("b2"); !e.Locks[0].Overdue || e.Locks[0].Left != 0 || !e.StartsAt.IsZero() {
			t.Errorf("explanation %+v", e)
		}
		if _, err := y.queue.Why(t.Context(), "nobody"); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("unknown: %v", err)
		}
		blocked, err := y.queue.Blocked(t.Context(), 10)
		must(t, err)
		if len(blocked) != 4 || y.depth() != 4 || len(y.active()) != 1 {
			t.Errorf("%d blocked, %d queued, %d active", len(blocked), y.depth(), len(y.active()))
		}
	})
}

// An item goes to a node that reaches its root and has an up-to-date copy.
//
// shows: DL-79 DL-80 DL-81
func TestNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		behind := true
		ran := map[string]string{}
		start := func(node string, roots ...string) *sched.Worker {
			w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1, Node: node, Roots: roots,
				Run: func(_ context.Context, job *sched.Job) error {
					ran[job.Item.Workflow] = node
					return nil
				},
				CheckFresh: func(context.Context, *lockkeeper.Item) error {
					if behind {
						return errors.New("this copy is behind")
					}
					return nil
				}})
			must(t, err)
			return w
		}
		here := start("here", "blog")
		synctest.Wait()
		if _, err := y.queue.Enqueue(t.Context(), sched.ItemSpec{Workflow: "x", Root: "shop", By: ada}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("a root that no worker reaches: %v", err)
		}
		it := y.enqueue(sched.ItemSpec{Workflow: "blog", Root: "blog", Locks: writes("a")})
		synctest.Wait()
		if now := y.item(it.ID); now.Status != lockkeeper.ItemQueued || now.Attempts != 0 || now.WaitsOn == "" {
			t.Errorf("a node that is behind: %+v", now)
		}
		e, err := y.queue.Why(t.Context(), it.ID)
		must(t, err)
		if e.Behind != "here" {
			t.Errorf("explanation %+v", e)
		}
		behind = false
		there := start("there", "shop")
		y.enqueue(sched.ItemSpec{Workflow: "shop", Root: "shop"})
		time.Sleep(30 * time.Second)
		for _, w := range []*sched.Worker{here, there} {
			_, err := w.Stop(t.Context())
			must(t, err)
		}
		if ran["blog"] != "here" || ran["shop"] != "there" {
			t.Errorf("ran on %v", ran)
		}
	})
}
