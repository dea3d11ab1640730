package sched_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
	"lockkeeper/store/sqlstore"
)

var tight = sched.Limits{Agents: 1, API: 1, Tests: 1, Jobs: 1, CPU: 1, JobsPerProject: 1, MapsPerProject: 1}

// If an item is woken for the slot of its next phase and ends without taking it, the next
// waiting item is woken.
//
// shows: GP-11
func TestEndsWhileWoken(t *testing.T) {
	y := newYard(t, sched.Options{Limits: tight})
	y.enqueue(sched.ItemSpec{Workflow: "B", Pools: []string{"test"}})
	b := y.claim()
	y.enqueue(sched.ItemSpec{Workflow: "A"})
	a := y.claim()
	_ = a.Phase(impatient{t.Context()}, "test", "test") // waits on pool:test and gives up
	c := y.enqueue(sched.ItemSpec{Workflow: "C", Pools: []string{"test"}})
	if y.claim() != nil {
		t.Fatal("C started")
	}
	y.finish(b, nil)
	y.finish(a, nil)
	if it := y.item(c.ID); it.Stage == lockkeeper.StageWaiting && y.taken("test") == 0 {
		t.Errorf("C is waiting on %s, which is free, and no item is woken: claim %v", it.WaitsOn, y.claim())
	}
	if it := y.item(a.Item.ID); it.WaitsOn != "" || it.WokenBy != "" {
		t.Errorf("ended, and waiting on %q, woken by %q", it.WaitsOn, it.WokenBy)
	}
}

// escalated returns an item that has a reservation.
func escalated(t *testing.T, y *yard, reader *lock.Grant) *lockkeeper.Item {
	it := y.enqueue(sched.ItemSpec{Workflow: "writer", Locks: writes("shared")})
	if y.claim() != nil {
		t.Fatal("started")
	}
	for range 30 {
		time.Sleep(time.Minute)
		y.tick()
	}
	it = y.item(it.ID)
	if !it.Escalated || it.GrantID == "" {
		t.Fatalf("not escalated: %+v", it)
	}
	return it
}

// stream holds the path with overlapping readers until the item is dispatched, and returns how
// long that took.
func stream(t *testing.T, y *yard, reader *lock.Grant, limit time.Duration) (time.Duration, *sched.Job) {
	for i, began := 0, time.Now(); time.Since(began) < limit; i++ {
		next, err := y.locks.TryAcquire(t.Context(), lockkeeper.Request{Holder: fmt.Sprint("r", i), Locks: reads("shared"), Policy: "person"})
		must(t, reader.Release(t.Context()))
		y.tick()
		if job := y.claim(); job != nil {
			return time.Since(began), job
		}
		if err != nil {
			t.Fatal(err)
		}
		reader = next
		time.Sleep(time.Minute)
		y.tick()
		if job := y.claim(); job != nil {
			return time.Since(began), job
		}
	}
	return limit, nil
}

// An escalated item whose reservation lapsed, because no worker ticked, is not starved by
// readers again.
//
// shows: SW-32 SW-73
func TestReservationThatLapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{MaxLockRetries: 1 << 20})
		reader := y.hold("reader", reads("shared"))
		it := escalated(t, y, reader)
		time.Sleep(40 * time.Minute) // no worker ticks, as during a suspend or a deployment
		y.tick()
		y.claim()
		now := y.item(it.ID)
		t.Logf("escalated %t grant %q waiting on %q", now.Escalated, now.GrantID, now.WaitsOn)
		if took, job := stream(t, y, reader, 10*time.Hour); job == nil {
			now := y.item(it.ID)
			t.Errorf("starved for %s: escalated %t, grant %q, waiting on %s, blocked %s", took, now.Escalated, now.GrantID, now.WaitsOn, now.Blocked)
		}
	})
}

// An escalated item whose worker dies reserves its locks again.
//
// shows: SW-32 SW-71
func TestPutBackAfterEscalation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{MaxLockRetries: 1 << 20})
		reader := y.hold("reader", reads("shared"))
		it := escalated(t, y, reader)
		must(t, reader.Release(t.Context()))
		job := y.claim()
		if job == nil {
			t.Fatal("not started")
		}
		must(t, job.Return(t.Context(), "interrupted"))
		reader = y.hold("reader", reads("shared"))
		y.claim()
		if took, job := stream(t, y, reader, 10*time.Hour); job == nil {
			now := y.item(it.ID)
			t.Errorf("starved for %s: escalated %t, grant %q, waiting on %s, blocked %s", took, now.Escalated, now.GrantID, now.WaitsOn, now.Blocked)
		}
	})
}

// Items whose locks were promoted keep them while they wait for a slot.
//
// shows: SW-32 CF-24
func TestPromisesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{MaxLockRetries: 1 << 20})
		r1, r2 := y.hold("r1", reads("s1")), y.hold("r2", reads("s2"))
		a := y.enqueue(sched.ItemSpec{Workflow: "a", Locks: writes("s1")})
		b := y.enqueue(sched.ItemSpec{Workflow: "b", Locks: writes("s2")})
		y.claim()
		for range 12 {
			time.Sleep(time.Minute)
			y.tick()
			y.claim()
		}
		must(t, r1.Release(t.Context()), r2.Release(t.Context()))
		for range 40 { // workers tick but have no free slot, so they claim nothing
			time.Sleep(time.Minute)
			y.tick()
		}
		for _, it := range []*lockkeeper.Item{a, b} {
			_, err := y.locks.TryAcquire(t.Context(), lockkeeper.Request{Holder: "late", Locks: reads(it.Locks[0].Path), Policy: "person"})
			if err == nil {
				now := y.item(it.ID)
				t.Errorf("%s was promised its locks and overtaken: stage %d escalated %t grant %q", it.Workflow, now.Stage, now.Escalated, now.GrantID)
			}
		}
	})
}

// An item whose root no worker reaches does not keep other items from a path.
//
// shows: DL-79
func TestUnreachableRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		far := lockkeeper.Worker{ID: "far", Node: "far", Roots: []string{"far"}}
		put := func(expires time.Duration) {
			must(t, y.store.Update(t.Context(), func(tx store.Tx) error {
				far.Expires = tx.Now().Lease.Add(expires)
				return tx.PutWorker(far)
			}))
		}
		put(time.Hour)
		holder := y.hold("ada", writes("p"))
		y.enqueue(sched.ItemSpec{Workflow: "far", Root: "far", Locks: writes("p")})
		if j, err := y.queue.Dispatch(t.Context(), far); j != nil || err != nil {
			t.Fatal(j, err)
		}
		near := y.enqueue(sched.ItemSpec{Workflow: "near", Locks: writes("p")})
		y.claim()
		must(t, y.store.Update(t.Context(), func(tx store.Tx) error { return tx.DeleteWorker("far") }))
		must(t, holder.Release(t.Context()))
		for _, it := range y.all() {
			t.Logf("%s stage %d waiting on %q woken %q root %q", it.Workflow, it.Stage, it.WaitsOn, it.WokenBy, it.Root)
		}
		began := time.Now()
		w := y.worker(1, takes(time.Second))
		defer w.Close()
		for y.item(near.ID).Status != lockkeeper.ItemCompleted && time.Since(began) < time.Hour {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("p is free, and near waited %s for it", took)
		}
	})
}

// failing is a store whose next updates fail, before or after their commit.
type failing struct {
	store.Store
	before, after atomic.Int64 // how many more updates fail
}

var errFail = errors.New("the store fails")

func (f *failing) Update(ctx context.Context, fn func(store.Tx) error) error {
	if f.before.Add(-1) >= 0 {
		return errFail
	}
	if err := f.Store.Update(ctx, fn); err != nil {
		return err
	}
	if f.after.Add(-1) >= 0 {
		return errFail
	}
	return nil
}

func newFailing(t *testing.T, opt sched.Options) (*yard, *failing) {
	f := &failing{Store: memstore.New(space, memstore.Options{KeepEvents: 100_000})}
	y := &yard{t: t, store: f, locks: lock.New(f, lock.Options{})}
	var err error
	y.queue, err = newQueue(f, y.locks, opt)
	must(t, err)
	t.Cleanup(func() { must(t, y.locks.Close(), f.Close()) })
	return y, f
}

// If the store fails when an item ends, the worker reports the end once the store is back.
//
// shows: SW-74
func TestStoreThatFailsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, f := newFailing(t, sched.Options{})
		it := y.enqueue(sched.ItemSpec{Workflow: "x", Locks: writes("p")})
		w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1, Node: "here", OnError: func(err error) { t.Log(time.Now().Format("15:04:05 "), err) },
			Run: func(context.Context, *sched.Job) error { f.before.Store(40); return nil }})
		must(t, err)
		time.Sleep(time.Minute)
		f.before.Store(0)
		for i := range 10 {
			time.Sleep(time.Hour)
			now := y.item(it.ID)
			if now.Status == lockkeeper.ItemCompleted {
				break
			}
			if i == 9 {
				t.Errorf("after ten hours it is %s, attempts %d", now.Status, now.Attempts)
			}
		}
		must(t, w.Close())
	})
}

// An item is requeued if the response to the transaction that dispatched it was lost.
//
// shows: SW-74 GP-11
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, f := newFailing(t, sched.Options{})
		it := y.enqueue(sched.ItemSpec{Workflow: "x", Locks: writes("p")})
		next := y.enqueue(sched.ItemSpec{Workflow: "next", Locks: writes("p")})
		var runs atomic.Int64
		w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1, Node: "here", OnError: func(err error) { t.Log(time.Now().Format("15:04:05 "), err) },
			Run: func(ctx context.Context, j *sched.Job) error {
				if runs.Add(1) == 1 {
					f.after.Store(1)
				}
				return nil
			}})
		must(t, err)
		began := time.Now()
		for range 10 * 60 {
			time.Sleep(time.Minute)
			if y.item(next.ID).Status == lockkeeper.ItemCompleted {
				break
			}
		}
		t.Logf("x %s, next %s after %s, %d attempts", y.item(it.ID).Status, y.item(next.ID).Status, time.Since(began), y.item(next.ID).Attempts)
		if y.item(next.ID).Status != lockkeeper.ItemCompleted {
			t.Error("never completed")
		}
		must(t, w.Close())
	})
}

// Texts that a store could not keep unchanged are refused, and have no other effect.
func TestHostileTexts(t *testing.T) {
	for _, kind := range []string{"memory", "SQLite", "PostgreSQL"} {
		t.Run(kind, func(t *testing.T) {
			var y *yard
			if kind == "memory" {
				y = newYard(t, sched.Options{})
			} else {
				s := shop{Kind: kind, Options: sqlstore.Options{}}
				s.create(t)
				st, err := s.open(t.Context())
				must(t, err)
				y = &yard{t: t, store: st, locks: lock.New(st, lock.Options{})}
				y.queue, err = newQueue(st, y.locks, sched.Options{})
				must(t, err)
				t.Cleanup(func() { must(t, y.locks.Close(), st.Close()) })
			}
			bad := "a\x00b\xff\u202e\u009b2J"
			for _, o := range []sched.ItemSpec{{Workflow: "w\xff"}, {Workflow: "w", Key: "k\xff"}, {Workflow: "w", Project: "p\xff"}, {Workflow: "w", Unit: "\u202e"}, {Workflow: "\u009b2J"},
				{Workflow: "w", Command: []string{"a\x00b"}}, {Workflow: "w", Command: []string{"a\xff"}}, {Workflow: "w", Dir: "../../x\x00"}, {Workflow: "w", By: lockkeeper.Actor{Name: bad, Kind: lockkeeper.ActorPerson}},
				{Workflow: "w", Phase: "job", Project: "*"}, {Workflow: "w", After: []string{"j1\x00"}}, {Workflow: "w", After: []string{"j\xff"}}} {
				it, err := y.queue.Enqueue(t.Context(), o)
				if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
					t.Errorf("order %q: %v (%s)", fmt.Sprintf("%+v", o), err, lockkeeper.CodeOf(err))
				}
				if err == nil {
					now := y.item(it[0].ID)
					if fmt.Sprint(now.Workflow, now.Key, now.Project, now.Command, now.Dir, now.By) != fmt.Sprint(o.Workflow, o.Key, o.Project, o.Command, o.Dir, func() lockkeeper.Actor {
						return now.By
					}()) {
						t.Errorf("stored otherwise: %+q -> %+q", fmt.Sprintf("%+v", o), fmt.Sprintf("%+v", now))
					}
				}
			}
			it := y.enqueue(sched.ItemSpec{Workflow: "w"})
			for job := y.claim(); job != nil; job = y.claim() {
				if err := job.Note(t.Context(), bad+strings.Repeat("x", 1<<20)); err != nil {
					t.Errorf("note: %v", err)
				}
				if _, err := job.Finish(t.Context(), errors.New(bad), nil); err != nil {
					t.Errorf("finish: %v", err)
					must(t, job.Return(t.Context(), "x"))
					break
				}
				if _, err := y.queue.Cancel(t.Context(), it.ID, lockkeeper.Actor{Name: bad, Kind: lockkeeper.ActorPerson}, bad); err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
					t.Errorf("cancel: %v", err)
				}
				_, err := y.queue.Retry(t.Context(), "j\x00\xff", ada)
				if lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
					t.Errorf("retry: %v", err)
				}
			}
		})
	}
}

// Work that calls runtime.Goexit ends its own item only.
//
// shows: SW-71
func TestWorkThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		it := y.enqueue(sched.ItemSpec{Workflow: "x", Locks: writes("p")})
		w := y.worker(1, func(context.Context, *sched.Job) error { runtime.Goexit(); return nil })
		time.Sleep(10 * time.Hour)
		if now := y.item(it.ID); now.Status == lockkeeper.ItemDispatched {
			t.Errorf("it is %s after ten hours", now.Status)
		}
		must(t, w.Close())
		t.Logf("after Close: %s", y.item(it.ID).Status)
	})
}

// A node lock and a tree lock on the same path block different items.
//
// shows: GP-14
func TestNodeAndTree(t *testing.T) {
	y := newYard(t, sched.Options{})
	on := func(path string, kind lockkeeper.Kind, mode lockkeeper.Mode) []lockkeeper.Lock {
		return []lockkeeper.Lock{{Target: lockkeeper.Target{Path: path, Kind: kind}, Mode: mode}}
	}
	node := y.hold("node", on("project/p1", lockkeeper.Node, lockkeeper.Read))
	tree := y.hold("tree", on("project/p1", lockkeeper.Tree, lockkeeper.Read))
	y.enqueue(sched.ItemSpec{Workflow: "X", Locks: on("project/p1", lockkeeper.Node, lockkeeper.Write)})
	ny := y.enqueue(sched.ItemSpec{Workflow: "Y", Locks: on("project/p1/map/m1", lockkeeper.Node, lockkeeper.Write)})
	y.claim()
	must(t, tree.Release(t.Context()))
	got, _ := y.started()
	if len(got) == 0 {
		t.Errorf("nothing blocks Y, and it is waiting on %q", y.item(ny.ID).WaitsOn)
	}
	must(t, node.Release(t.Context()))
}

// An item that waits for the slot of its next phase can be canceled, crash or give up. Its
// slots are released once.
//
// shows: GP-11
func TestWaitingForASlot(t *testing.T) {
	for _, how := range []string{"cancel", "crash", "context", "stop", "close"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t, sched.Options{Limits: sched.Limits{Agents: 2, API: 1, Tests: 1, Jobs: 9, CPU: 1, JobsPerProject: 9, MapsPerProject: 1}})
				y.enqueue(sched.ItemSpec{Workflow: "holder", Pools: []string{"test"}})
				holder := y.claim()
				holder.Grant.Keep()
				waits := y.enqueue(sched.ItemSpec{Workflow: "waits", Pools: []string{"claude"}, Job: true, Locks: writes("p")})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				runs := 0
				w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 2, Node: "here", Run: func(work context.Context, job *sched.Job) error {
					if job.Item.Workflow != "waits" {
						return nil
					}
					runs++
					if runs > 1 {
						return nil
					}
					both, end := context.WithCancel(work)
					defer end()
					defer context.AfterFunc(ctx, end)()
					return job.Phase(both, "test", "test")
				}})
				must(t, err)
				behind := y.enqueue(sched.ItemSpec{Workflow: "behind", Pools: []string{"test"}})
				time.Sleep(time.Minute)
				if it := y.item(waits.ID); it.WaitsOn != "pool:test" || y.taken("claude") != 0 || y.taken("jobs") != 1 {
					t.Fatalf("%+v", it)
				}
				switch how {
				case "cancel":
					_, err := y.queue.Cancel(t.Context(), waits.ID, ada, "why not")
					must(t, err)
				case "crash":
					must(t, y.locks.ForceRelease(t.Context(), y.item(waits.ID).GrantID, ada, "gone"))
				case "context":
					cancel()
				case "stop":
					short, done := context.WithTimeout(t.Context(), time.Second)
					still, err := w.Stop(short)
					done()
					if len(still) != 1 || err == nil {
						t.Errorf("still %v, %v", still, err)
					}
				case "close":
					must(t, w.Close())
				}
				time.Sleep(2 * time.Minute)
				y.finish(holder, nil)
				if how == "close" || how == "stop" {
					must(t, w.Close())
					w = y.worker(2, takes(time.Second))
				}
				time.Sleep(2 * time.Minute)
				it, other := y.item(waits.ID), y.item(behind.ID)
				t.Logf("%s: %s after %d attempts, %+v; behind %s", how, it.Status, it.Attempts, it.Failure, other.Status)
				if other.Status != lockkeeper.ItemCompleted || it.Stage != lockkeeper.StageEnded {
					t.Errorf("waits %+v, behind %+v", it, other)
				}
				must(t, w.Close())
				for _, pool := range []string{"test", "claude", "jobs"} {
					if n := y.taken(pool); n != 0 {
						t.Errorf("%d of %s", n, pool)
					}
				}
			})
		})
	}
}

// Escalated items on overlapping paths are served in order, even if one is canceled.
//
// shows: SW-32
func TestTwoEscalated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{MaxLockRetries: 1 << 20})
		g := y.hold("r", reads("d/x"))
		a := y.enqueue(sched.ItemSpec{Workflow: "a", Locks: writes("d/x", "d/y")})
		b := y.enqueue(sched.ItemSpec{Workflow: "b", Locks: writes("d/x")})
		c := y.enqueue(sched.ItemSpec{Workflow: "c", Locks: writes("d/y")})
		c1 := y.claim()
		c1.Grant.Keep()
		for range 25 {
			time.Sleep(time.Minute)
			y.tick()
			y.claim()
		}
		for it, escalated := range map[*lockkeeper.Item]bool{a: true, b: true, c: false} {
			if now := y.item(it.ID); now.Escalated != escalated {
				t.Errorf("%s is escalated: %t, waiting on %s", now.Workflow, now.Escalated, now.WaitsOn)
			}
		}
		_, err := y.queue.Cancel(t.Context(), a.ID, ada, "x")
		must(t, err)
		must(t, g.Release(t.Context()))
		names, _ := y.started()
		if len(names) != 1 || names[0] != "b" {
			t.Errorf("started %v", names)
		}
		if list, err := y.locks.Requests(t.Context()); err != nil || len(list) != 2 {
			t.Errorf("%d in the wait list", len(list))
		}
		_, err = y.queue.Retry(t.Context(), a.ID, ada)
		must(t, err)
		if now := y.item(a.ID); now.Escalated || now.GrantID != "" {
			t.Errorf("%+v", now)
		}
	})
}
