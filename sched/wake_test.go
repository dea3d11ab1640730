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

// Every change that makes an item ready wakes the waiting workers, so that no worker waits for
// a tick.
//
// shows: GP-14 SW-59
func TestWorkersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		fails := true
		w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1, Node: "here", TickEvery: 1000 * time.Hour,
			Run: func(_ context.Context, job *sched.Job) error {
				if job.Item.Workflow == "fails" && fails {
					return errors.New("no")
				}
				return nil
			}})
		must(t, err)
		ended := func(what string, it *lockkeeper.Item, want lockkeeper.ItemStatus) {
			t.Helper()
			synctest.Wait() // without advancing the clock
			if now := y.item(it.ID); now.Status != want {
				t.Errorf("%s: %s is %s, waiting on %q", what, it.Workflow, now.Status, now.WaitsOn)
			}
		}
		synctest.Wait()
		ended("queued", y.enqueue(sched.ItemSpec{Workflow: "plain"}), lockkeeper.ItemCompleted)

		grant := y.hold("ada", writes("a"))
		blocked := y.enqueue(sched.ItemSpec{Workflow: "blocked", Locks: writes("a")})
		ended("blocked", blocked, lockkeeper.ItemQueued)
		must(t, grant.Release(t.Context()))
		ended("its path is free", blocked, lockkeeper.ItemCompleted)

		failing := y.enqueue(sched.ItemSpec{Workflow: "fails"})
		later := y.enqueue(sched.ItemSpec{Workflow: "later", After: []string{failing.ID}})
		ended("failed", failing, lockkeeper.ItemError)
		ended("what it waits for failed", later, lockkeeper.ItemQueued)
		fails = false
		_, err = y.queue.Retry(t.Context(), failing.ID, ada)
		must(t, err)
		ended("retried", failing, lockkeeper.ItemCompleted)
		ended("what it waits for is done", later, lockkeeper.ItemCompleted)
		must(t, w.Close())

		returned := y.enqueue(sched.ItemSpec{Workflow: "returned"})
		job := y.claim()
		w, err = y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1, Node: "here", TickEvery: 1000 * time.Hour, Run: takes(0)})
		must(t, err)
		ended("a worker has it", returned, lockkeeper.ItemDispatched)
		must(t, job.Return(t.Context(), "interrupted"))
		ended("requeued", returned, lockkeeper.ItemCompleted)
		must(t, w.Close())
	})
}
