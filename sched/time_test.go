package sched_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// hold acquires locks for a holder outside the queue.
func (y *yard) hold(holder string, locks []lockkeeper.Lock) *lock.Grant {
	y.t.Helper()
	g, err := y.locks.TryAcquire(y.t.Context(), lockkeeper.Request{Holder: holder, Locks: locks, Policy: "person"})
	must(y.t, err)
	return g
}

// worker starts a worker that runs each item with run.
func (y *yard) worker(slots int, run func(context.Context, *sched.Job) error) *sched.Worker {
	y.t.Helper()
	w, err := y.queue.Start(y.t.Context(), sched.WorkerOptions{Slots: slots, Node: "here", Run: run,
		OnError: func(err error) { y.t.Errorf("trouble: %v", err) }})
	must(y.t, err)
	return w
}

// takes returns work with the given duration.
func takes(d time.Duration) func(context.Context, *sched.Job) error {
	return func(ctx context.Context, _ *sched.Job) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A run of 600 items of two minutes on 12 slots escalates no item and fails none, and hardly a
// slot is ever idle.
//
// shows: SW-32 SW-40 PL-52 PL-43
func TestHealthyRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		began := time.Now()
		var orders []sched.ItemSpec
		for i := range 600 {
			// Three of the five items of a controller share a file.
			locks := writes(fmt.Sprintf("app/views/c%d/s%d.erb", i/5, i))
			if i%5 < 3 {
				locks = append(locks, writes(fmt.Sprintf("app/models/c%d.rb", i/5))...)
			}
			orders = append(orders, sched.ItemSpec{Workflow: fmt.Sprint("s", i), Phase: "analyze", Project: fmt.Sprint("m", i%17), Locks: locks,
				Pools: []string{sched.PoolAgent}, By: ada})
		}
		_, err := y.queue.Enqueue(t.Context(), orders...)
		must(t, err)
		w := y.worker(12, takes(2*time.Minute))
		for y.depth() > 0 || len(y.active()) > 0 {
			time.Sleep(time.Minute)
		}
		if took, want := time.Since(began), 100*time.Minute; took > want*106/100 {
			t.Errorf("it took %s, all slots full it takes %s", took, want)
		}
		_, err = w.Stop(t.Context())
		must(t, err)
		if n := len(y.events(lockkeeper.EventEscalated, lockkeeper.EventFailed, lockkeeper.EventRequeued)); n > 0 {
			t.Errorf("%d items were escalated, failed or requeued", n)
		}
	})
}

func (y *yard) depth() int {
	n, err := y.queue.Depth(context.WithoutCancel(y.t.Context()))
	must(y.t, err)
	return n
}

func (y *yard) active() []*lockkeeper.Item {
	list, err := y.queue.Active(context.WithoutCancel(y.t.Context()))
	must(y.t, err)
	return list
}

// An item that a stream of readers would starve is escalated after ten minutes. It reserves its
// paths, and no later item overtakes it.
//
// shows: SW-32 SW-73 PL-52 CF-24 PL-82 CF-21
func TestEscalation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		writer := y.enqueue(sched.ItemSpec{Workflow: "writer", Phase: "analyze", Locks: writes("shared")})
		// Readers overlap, so that one always holds the path.
		reader := y.hold("reader 0", reads("shared"))
		w := y.worker(1, takes(time.Minute))
		defer w.Close()
		synctest.Wait()
		for i := 1; ; i++ {
			time.Sleep(time.Minute)
			next, err := y.locks.TryAcquire(t.Context(), lockkeeper.Request{Holder: fmt.Sprint("reader ", i), Locks: reads("shared"), Policy: "person"})
			if err != nil {
				if !lock.IsBlocked(err) {
					t.Fatal(err)
				}
				if waited := time.Duration(i) * time.Minute; waited < 10*time.Minute || waited > 12*time.Minute {
					t.Errorf("escalated after %s", waited)
				}
				break
			}
			must(t, reader.Release(t.Context()))
			reader = next
			if i > 30 {
				t.Fatal("readers starve it for ever")
			}
		}
		if it := y.item(writer.ID); !it.Escalated || it.Status != lockkeeper.ItemQueued || it.GrantID == "" {
			t.Errorf("item %+v", it)
		}
		if n := len(y.events(lockkeeper.EventEscalated)); n != 1 {
			t.Errorf("%d events say so", n)
		}
		must(t, reader.Release(t.Context()))
		synctest.Wait()
		if it := y.item(writer.ID); it.Status != lockkeeper.ItemDispatched {
			t.Errorf("the path is free, and the item is %s, waiting on %q", it.Status, it.WaitsOn)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if it := y.item(writer.ID); it.Status != lockkeeper.ItemCompleted {
			t.Errorf("the item is %s", it.Status)
		}
	})
}

// An escalated item that lost its position in the wait list, because no worker kept it, gets a
// new one.
//
// shows: SW-32 CF-24
func TestLostReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		writer := y.enqueue(sched.ItemSpec{Workflow: "writer", Locks: writes("shared")})
		reader := y.hold("reader", reads("shared"))
		w := y.worker(1, takes(time.Minute))
		time.Sleep(11 * time.Minute)
		first := y.item(writer.ID).GrantID
		must(t, w.Close())
		time.Sleep(time.Hour)
		w = y.worker(1, takes(time.Minute))
		time.Sleep(time.Minute)
		if again := y.item(writer.ID).GrantID; first == "" || again == "" || again == first {
			t.Errorf("it had reserved %q, and has %q", first, again)
		}
		must(t, reader.Release(t.Context()))
		time.Sleep(2 * time.Minute)
		if now := y.item(writer.ID); now.Status != lockkeeper.ItemCompleted {
			t.Errorf("it is %s", now.Status)
		}
		must(t, w.Close())
	})
}

// An item never fails because it waits for a slot, however long.
func TestSlotWaitsDoNotFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{Limits: sched.Limits{Agents: 1, API: 1, Tests: 1, Jobs: 1, CPU: 1, JobsPerProject: 1, MapsPerProject: 1}})
		for i := range 3 {
			y.enqueue(sched.ItemSpec{Workflow: fmt.Sprint("w", i), Locks: writes(fmt.Sprint("f", i)), Pools: []string{sched.PoolAgent}})
		}
		w := y.worker(3, takes(2*time.Hour))
		time.Sleep(7 * time.Hour)
		_, err := w.Stop(t.Context())
		must(t, err)
		if n := len(y.events(lockkeeper.EventFailed, lockkeeper.EventBlocked)); n > 0 || y.depth() > 0 {
			t.Errorf("%d events, %d left", n, y.depth())
		}
	})
}

// An item that the same holder blocks for too long counts retries and ends in the error state
// with all facts. A person can retry it.
//
// shows: SW-40 SW-41 PL-43 CF-18 GP-26 DL-75
func TestLockTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{MaxLockRetries: 3})
		grant := y.hold("ada", writes("a"))
		it := y.enqueue(sched.ItemSpec{Workflow: "blocked", Phase: "apply", Locks: writes("a")})
		w := y.worker(1, takes(time.Minute))
		defer w.Close()
		seen := map[int]bool{}
		for range 60 {
			time.Sleep(time.Minute)
			synctest.Wait()
			now := y.item(it.ID)
			if now.Status == lockkeeper.ItemError {
				break
			}
			seen[now.Retries] = true
		}
		end := y.item(it.ID)
		switch f := end.Failure; {
		case end.Status != lockkeeper.ItemError || f == nil:
			t.Fatalf("item %+v", end)
		case len(f.Conflicts) != 1 || f.Conflicts[0].Holder != "ada" || f.Waited < 15*time.Minute || f.Waited > 25*time.Minute || f.Attempts != 4 || f.Phase != "apply":
			t.Errorf("failure %+v", f)
		}
		for n := range 4 {
			if !seen[n] {
				t.Errorf("%d retries were never seen", n)
			}
		}
		if list, err := y.locks.Requests(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("a reservation was left in the wait list: %v, %v", list, err)
		}
		must(t, grant.Release(t.Context()))
		synctest.Wait()
		if now := y.item(it.ID); now.Status != lockkeeper.ItemError {
			t.Errorf("it went back by itself: %s", now.Status)
		}
		_, err := y.queue.Retry(t.Context(), it.ID, ada)
		must(t, err)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if now := y.item(it.ID); now.Status != lockkeeper.ItemCompleted || now.Phase != "apply" || now.Attempts != 1 {
			t.Errorf("after a retry: %+v", now)
		}
	})
}

// The timeout restarts when the blockers change.
func TestTimeoutRestartsWithTheBlockers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{MaxLockRetries: -1, EscalateAfter: 10 * time.Hour})
		grant := y.hold("g0", reads("a"))
		it := y.enqueue(sched.ItemSpec{Workflow: "blocked", Locks: writes("a")})
		w := y.worker(1, takes(time.Minute))
		defer w.Close()
		for i := range 20 {
			time.Sleep(4 * time.Minute)
			next := y.hold(fmt.Sprint("g", i+1), reads("a"))
			must(t, grant.Release(t.Context()))
			grant = next
		}
		if now := y.item(it.ID); now.Retries != 0 || now.Status != lockkeeper.ItemQueued {
			t.Errorf("%d retries, %s", now.Retries, now.Status)
		}
	})
}

// Stop waits for running items and starts no new ones. With a time limit, its error names the
// items that still run. Start resumes the queue.
//
// shows: SW-52 SW-53 PL-48 GP-27 SW-74
func TestStopAndStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		for i := range 4 {
			y.enqueue(sched.ItemSpec{Workflow: fmt.Sprint("w", i)})
		}
		w := y.worker(2, takes(time.Hour))
		time.Sleep(time.Minute)
		limit, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		still, err := w.Stop(limit)
		if len(still) != 2 || still[0].Workflow != "w0" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("still running %v, %v", still, err)
		}
		still, err = w.Stop(t.Context())
		if len(still) != 0 || err != nil || y.depth() != 2 {
			t.Errorf("then %v, %v, %d queued", still, err, y.depth())
		}
		w = y.worker(2, takes(time.Hour))
		time.Sleep(61 * time.Minute)
		_, err = w.Stop(t.Context())
		must(t, err)
		if y.depth() != 0 {
			t.Errorf("%d queued", y.depth())
		}
	})
}

// A panic, an error and a lost grant each end one item only.
//
// shows: SW-71 GP-12
func TestCrashesOfOneItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		panics := y.enqueue(sched.ItemSpec{Workflow: "panics", Locks: writes("a")})
		fails := y.enqueue(sched.ItemSpec{Workflow: "fails", Locks: writes("a")})
		robbed := y.enqueue(sched.ItemSpec{Workflow: "robbed", Locks: writes("b")})
		last := y.enqueue(sched.ItemSpec{Workflow: "last", Locks: writes("a", "b")})
		ended := make(chan error, 10)
		var mu sync.Mutex
		told := map[string][]lockkeeper.ItemStatus{}
		w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 2, Node: "here", OnEnd: func(it lockkeeper.Item) {
			mu.Lock()
			defer mu.Unlock()
			told[it.Workflow] = append(told[it.Workflow], it.Status)
		}, Run: func(ctx context.Context, job *sched.Job) error {
			switch job.Item.Workflow {
			case "panics":
				panic("at the disco")
			case "fails":
				return errors.New("it failed")
			case "robbed":
				if job.Item.Attempts == 1 {
					must(t, y.locks.ForceRelease(ctx, job.Grant.ID, ada, "taken"))
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return context.Cause(ctx)
				}
			}
			return nil
		}})
		must(t, err)
		time.Sleep(time.Minute)
		_, err = w.Stop(t.Context())
		must(t, err)
		if err := <-ended; err == nil || errors.Is(err, lock.ErrReleased) {
			t.Errorf("the work of a lost grant ended with %v", err)
		}
		if it := y.item(panics.ID); it.Status != lockkeeper.ItemError || !strings.Contains(it.Failure.Reason, "at the disco") {
			t.Errorf("panics: %+v", it)
		}
		if it := y.item(fails.ID); it.Status != lockkeeper.ItemError || it.Failure.Reason != "it failed" {
			t.Errorf("fails: %+v", it)
		}
		if it := y.item(robbed.ID); it.Status != lockkeeper.ItemCompleted || it.Attempts != 2 {
			t.Errorf("robbed: %+v", it)
		}
		if it := y.item(last.ID); it.Status != lockkeeper.ItemCompleted {
			t.Errorf("last: %+v", it)
		}
		if n := y.taken(sched.PoolJobs); n != 0 {
			t.Errorf("%d slots are lost", n)
		}
		if !slices.Equal(told["robbed"], []lockkeeper.ItemStatus{lockkeeper.ItemQueued, lockkeeper.ItemCompleted}) || !slices.Equal(told["fails"], []lockkeeper.ItemStatus{lockkeeper.ItemError}) {
			t.Errorf("told %v", told)
		}
	})
}

func (y *yard) taken(pool string) (n int) {
	must(y.t, y.store.View(context.WithoutCancel(y.t.Context()), func(r store.Reader) (err error) {
		n, err = r.SlotsTaken(pool)
		return err
	}))
	return n
}

// shows: SW-51 SW-57 SW-58 GP-13 GP-7
func TestDependencies(t *testing.T) {
	y := newYard(t, sched.Options{})
	items, err := y.queue.Enqueue(t.Context(),
		sched.ItemSpec{Workflow: "third", Key: "c", After: []string{"a", "b"}, By: ada},
		sched.ItemSpec{Workflow: "first", Key: "a", By: ada}, sched.ItemSpec{Workflow: "second", Key: "b", After: []string{"a"}, By: ada})
	must(t, err)
	got, jobs := y.started()
	if !slices.Equal(got, []string{"first"}) {
		t.Fatalf("started %v", got)
	}
	y.finish(jobs[0], errors.New("no"))
	if got, _ := y.started(); got != nil {
		t.Fatalf("started %v after what they wait for failed", got)
	}
	_, err = y.queue.Retry(t.Context(), "a", ada)
	must(t, err)
	for _, want := range []string{"first", "second", "third"} {
		got, jobs := y.started()
		if !slices.Equal(got, []string{want}) {
			t.Fatalf("started %v, want %s", got, want)
		}
		y.finish(jobs[0], nil)
	}
	if it := y.item(items[0].ID); it.Status != lockkeeper.ItemCompleted || it.Attempts != 1 || it.CompletedAt.IsZero() || len(it.After) != 2 {
		t.Errorf("item %+v", it)
	}
}

// An invalid item is refused with a reason, and nothing is queued.
func TestBadOrders(t *testing.T) {
	y := newYard(t, sched.Options{})
	y.enqueue(sched.ItemSpec{Workflow: "there", Key: "k"})
	for name, orders := range map[string][]sched.ItemSpec{
		"no name":           {{}},
		"unknown phase":     {{Workflow: "x", Phase: "aply"}},
		"unknown class":     {{Workflow: "x", Class: "gpu"}},
		"unknown pool":      {{Workflow: "x", Pools: []string{"codex"}}},
		"a cap as a pool":   {{Workflow: "x", Pools: []string{sched.PoolCPU}}},
		"unknown item":      {{Workflow: "x", After: []string{"j99"}}},
		"key is taken":      {{Workflow: "x", Key: "k"}},
		"key used twice":    {{Workflow: "x", Key: "n"}, {Workflow: "y", Key: "n"}},
		"cycle":             {{Workflow: "x", Key: "1", After: []string{"2"}}, {Workflow: "y", Key: "2", After: []string{"1"}}},
		"waits for self":    {{Workflow: "x", Key: "1", After: []string{"1"}}},
		"key like an id":    {{Workflow: "x", Key: "j7"}},
		"not text":          {{Workflow: "x\xff"}},
		"control":           {{Workflow: "x\x1b[2J"}},
		"bad path":          {{Workflow: "x", Locks: writes("../up")}},
		"unknown policy":    {{Workflow: "x", Policy: "mine"}},
		"no worker gets it": {{Workflow: "x", Root: "elsewhere"}},
		"map, no project":   {{Workflow: "x", Map: true}},
	} {
		_, err := y.queue.Enqueue(t.Context(), orders...)
		if lockkeeper.CodeOf(err) != lockkeeper.CodeInput || !strings.Contains(err.Error(), "next: ") && !strings.Contains(err.Error(), "policy") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if y.depth() != 1 {
		t.Errorf("%d are queued", y.depth())
	}
	for _, limits := range []sched.Limits{{Agents: 1}, {Agents: -1, API: 1, Tests: 1, Jobs: 1, CPU: 1, JobsPerProject: 1, MapsPerProject: 1}} {
		if _, err := newQueue(y.store, y.locks, sched.Options{Limits: limits}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("limits %+v: %v", limits, err)
		}
	}
	if _, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: -1, Run: takes(0)}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("negative slots: %v", err)
	}
}

// An item whose locks are too wide is not dropped but shown in the error state.
//
// shows: PL-36
func TestOverLock(t *testing.T) {
	y := newYard(t, sched.Options{})
	it := y.enqueue(sched.ItemSpec{Workflow: "wide", Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "app", Kind: lockkeeper.Dir}, Mode: lockkeeper.Write}}})
	if now := y.item(it.ID); now.Status != lockkeeper.ItemError || !strings.Contains(now.Failure.Reason, "app") || y.claim() != nil {
		t.Errorf("item %+v", now)
	}
	if _, err := y.queue.Retry(t.Context(), it.ID, ada); lockkeeper.CodeOf(err) != lockkeeper.CodeOverLock {
		t.Errorf("retry: %v", err)
	}
	if n := len(y.events(lockkeeper.EventFailed)); n != 1 {
		t.Errorf("%d events say so", n)
	}
}
