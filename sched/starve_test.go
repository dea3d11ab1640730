package sched_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/store/sqlstore"
)

// A rush is a series of urgent items that keep coming, so that the slots are never free.
type rush struct {
	order sched.ItemSpec // specification of each urgent item
	every time.Duration  // interval between two urgent items
	slots int
	took  time.Duration // duration of each item
	locks bool          // each urgent item writes its own file
	teams int           // projects of the urgent items
}

// started runs a rush until every late item has started or the time is up, and returns
// how long each of them waited.
func (s rush) started(t *testing.T, y *yard, limit time.Duration, late ...*lockkeeper.Item) map[string]time.Duration {
	t.Helper()
	began := time.Now()
	w := y.worker(s.slots, takes(s.took))
	waited := map[string]time.Duration{}
	for i := 0; len(waited) < len(late) && time.Since(began) < limit; i++ {
		next := s.order
		next.Workflow = fmt.Sprint("urgent ", i)
		if s.locks {
			next.Locks = writes(fmt.Sprint("urgent", i))
		}
		if s.teams > 0 {
			next.Project = fmt.Sprint("team ", i%s.teams)
		}
		y.enqueue(next)
		time.Sleep(s.every)
		for _, it := range late {
			if now := y.item(it.ID); now.Status != lockkeeper.ItemQueued && waited[it.ID] == 0 {
				waited[it.ID] = now.DispatchedAt.Sub(now.QueuedAt)
			}
		}
	}
	must(t, w.Close())
	return waited
}

// An item that only ever finds its slots taken by items of better ranks starts after
// EscalateAfter, once a slot is free.
//
// shows: SW-32 PL-52 PL-82
func TestSlotStarvation(t *testing.T) {
	agent := []string{sched.PoolAgent}
	for name, c := range map[string]struct {
		rush
		late  sched.ItemSpec
		limit sched.Limits
	}{
		"one slot":                {rush: rush{slots: 1, took: time.Minute, every: 50 * time.Second, order: sched.ItemSpec{Phase: "verify"}}, late: sched.ItemSpec{Phase: "analyze"}},
		"overload":                {rush: rush{slots: 1, took: 20 * time.Minute, every: time.Minute, order: sched.ItemSpec{Phase: "verify"}}, late: sched.ItemSpec{Phase: "analyze"}},
		"with locks":              {rush: rush{slots: 1, took: time.Minute, every: 50 * time.Second, locks: true, order: sched.ItemSpec{Phase: "apply"}}, late: sched.ItemSpec{Phase: "analyze", Locks: writes("late")}},
		"projects":                {rush: rush{slots: 1, took: time.Minute, every: 20 * time.Second, teams: 3, order: sched.ItemSpec{Phase: "apply"}}, late: sched.ItemSpec{Phase: "analyze", Project: "other"}},
		"a pool with three slots": {rush: rush{slots: 9, took: time.Minute, every: 15 * time.Second, order: sched.ItemSpec{Phase: "apply", Pools: agent}}, late: sched.ItemSpec{Phase: "research", Pools: agent}, limit: agents(3)},
		"a pool with one slot":    {rush: rush{slots: 9, took: 2 * time.Minute, every: time.Minute, locks: true, order: sched.ItemSpec{Phase: "test", Pools: agent}}, late: sched.ItemSpec{Phase: "apply", Pools: agent, Locks: writes("late")}, limit: agents(1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t, sched.Options{Limits: c.limit})
				for range 12 { // fills the slots and the queue
					first := c.order
					first.Workflow = "urgent"
					y.enqueue(first)
				}
				c.late.Workflow = "late"
				late := y.enqueue(c.late)
				bound := 10*time.Minute + c.took + time.Minute
				waited := c.started(t, y, 2*bound, late)[late.ID]
				if waited < 10*time.Minute || waited > bound {
					t.Errorf("started after %s, want 10m to %s; %d escalations", waited, bound, len(y.events(lockkeeper.EventEscalated)))
				}
			})
		})
	}
}

func agents(n int) sched.Limits {
	l := sched.DefaultLimits()
	l.Agents = n
	return l
}

// Only the first item of each rank is escalated; those behind it wait for their turn.
// Escalated items start in the order in which they were escalated.
func TestSlotStarvationOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		s := rush{slots: 1, took: time.Minute, every: 30 * time.Second, order: sched.ItemSpec{Phase: "verify"}}
		late := []*lockkeeper.Item{
			y.enqueue(sched.ItemSpec{Workflow: "late 1", Phase: "analyze", Project: "p"}), y.enqueue(sched.ItemSpec{Workflow: "late 2", Phase: "analyze", Project: "q"}),
			y.enqueue(sched.ItemSpec{Workflow: "late 3", Phase: "batch_plan"}),
		}
		y.enqueue(sched.ItemSpec{Workflow: "urgent", Phase: "verify"})
		waited := s.started(t, y, time.Hour, late...)
		for i, bound := range []time.Duration{14 * time.Minute, 26 * time.Minute, 14 * time.Minute} {
			if got := waited[late[i].ID]; got < 10*time.Minute || got > bound {
				t.Errorf("%s started after %s, want 10m to %s", late[i].Workflow, got, bound)
			}
		}
	})
}

// The time that an item has waited for a slot is kept across a restart of all workers.
func TestSlotWaitSurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	must(t, sqlstore.CreateSQLite(t.Context(), path, space))
	now := store.Moment{Lease: 1, Wall: time.Now()}
	var late *lockkeeper.Item
	var dispatched []string
	for session := range 13 { // one session per minute
		st, err := sqlstore.OpenSQLite(t.Context(), path, space, sqlstore.Options{Clock: func() store.Moment { return now }, Boot: fmt.Sprint(session / 4)})
		must(t, err)
		locks := lock.New(st, lock.Options{})
		queue, err := newQueue(st, locks, sched.Options{})
		must(t, err)
		y := &yard{t: t, store: st, locks: locks, queue: queue}
		if session == 0 {
			late = y.enqueue(sched.ItemSpec{Workflow: "late", Phase: "analyze"})
		}
		y.enqueue(sched.ItemSpec{Workflow: "urgent", Phase: "verify"})
		y.tick()
		job := y.claim()
		dispatched = append(dispatched, job.Item.Workflow)
		now.Lease, now.Wall = now.Lease.Add(time.Minute), now.Wall.Add(time.Minute)
		y.tick()
		y.finish(job, nil)
		must(t, locks.Close(), st.Close())
		if session%4 == 3 {
			now.Lease = 1 // the host reboots, which restarts its lease clock
		}
		if job.Item.ID == late.ID {
			break
		}
	}
	if n := len(dispatched); n < 11 || n > 12 || dispatched[n-1] != "late" {
		t.Errorf("dispatched %q", dispatched)
	}
}

// Items that take turns in waiting for a slot are not escalated, because none of them leads for
// long.
func TestNoEscalationInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		for range 40 {
			y.enqueue(sched.ItemSpec{Workflow: "one of many", Phase: "analyze"})
		}
		w := y.worker(1, takes(time.Minute))
		for y.depth() > 0 {
			time.Sleep(time.Minute)
		}
		_, err := w.Stop(context.WithoutCancel(t.Context()))
		must(t, err)
		if n := len(y.events(lockkeeper.EventEscalated)); n > 0 {
			t.Errorf("%d were escalated", n)
		}
	})
}

// A writer that items of the queue keep from its file, because their reads overlap, starts after
// EscalateAfter and at most two of their durations. An item that only waits for one long item
// reserves nothing, so its other files stay free meanwhile.
//
// shows: SW-32 SW-73 PL-82 CF-24
func TestStarvedByItems(t *testing.T) {
	const took = 4 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		y.enqueue(sched.ItemSpec{Workflow: "urgent", Locks: reads("shared")})
		writer := y.enqueue(sched.ItemSpec{Workflow: "writer", Locks: writes("shared")})
		s := rush{slots: 3, took: took, every: 2 * time.Minute, order: sched.ItemSpec{Phase: "verify", Locks: reads("shared")}}
		if waited := s.started(t, y, 2*time.Hour, writer)[writer.ID]; waited < 10*time.Minute || waited > 10*time.Minute+2*took {
			t.Errorf("started after %s", waited)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		y.enqueue(sched.ItemSpec{Workflow: "long", Locks: writes("shared")})
		long := y.claim()
		long.Grant.Keep()
		writer := y.enqueue(sched.ItemSpec{Workflow: "writer", Locks: writes("shared", "other")})
		for range 15 {
			y.claim()
			time.Sleep(time.Minute)
			y.tick()
		}
		if it := y.item(writer.ID); !it.Escalated || it.GrantID != "" {
			t.Errorf("escalated %t, reserved %q", it.Escalated, it.GrantID)
		}
		y.enqueue(sched.ItemSpec{Workflow: "reader", Phase: "analyze", Locks: reads("other")})
		reader := y.claim()
		if reader == nil {
			t.Fatal("the reader waits for an item that cannot start")
		}
		y.finish(reader, nil)
		y.enqueue(sched.ItemSpec{Workflow: "urgent", Phase: "verify", Locks: writes("shared")})
		y.finish(long, nil)
		if next := y.claim(); next == nil || next.Item.ID != writer.ID {
			t.Errorf("started %+v", next)
		}
	})
}
