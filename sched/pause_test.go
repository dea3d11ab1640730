package sched_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/sched"
)

// A paused worker claims nothing until it is resumed. Work that asks to be postponed returns to
// the queue as if it had never started.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		later := true
		var w *sched.Worker
		w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1, Node: "here", TickEvery: 1000 * time.Hour,
			Run: func(context.Context, *sched.Job) error {
				if later {
					w.Pause()
					return &sched.LaterError{Reason: "a limit"}
				}
				return nil
			}})
		must(t, err)
		a, b := y.enqueue(sched.ItemSpec{Workflow: "a", Locks: writes("a")}), y.enqueue(sched.ItemSpec{Workflow: "b"})
		synctest.Wait()
		if it := y.item(a.ID); it.Status != lockkeeper.ItemQueued || it.Attempts != 0 || !w.Paused() {
			t.Errorf("requeued: %+v", it)
		}
		if it := y.item(b.ID); it.Status != lockkeeper.ItemQueued {
			t.Errorf("a paused worker took %+v", it)
		}
		y.hold("a person", writes("a")).Release(t.Context()) // fails unless its locks are free
		later = false
		w.Resume()
		synctest.Wait()
		for _, it := range []*lockkeeper.Item{a, b} {
			if now := y.item(it.ID); now.Status != lockkeeper.ItemCompleted {
				t.Errorf("resumed: %+v", now)
			}
		}
		must(t, w.Close())
	})
}

// Items of a root with its own worker go to no other worker. A worker that takes only those
// leaves all other items alone.
func TestOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		all, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1, Node: "all", TickEvery: 1000 * time.Hour, Run: takes(0)})
		must(t, err)
		all.Pause()
		own, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1, Node: "own", Roots: []string{"flow/x"}, Only: true, TickEvery: 1000 * time.Hour, Run: takes(0)})
		must(t, err)
		a, b := y.enqueue(sched.ItemSpec{Workflow: "a"}), y.enqueue(sched.ItemSpec{Workflow: "b", Root: "flow/x"})
		synctest.Wait()
		if y.item(a.ID).Status != lockkeeper.ItemQueued || y.item(b.ID).Status != lockkeeper.ItemCompleted {
			t.Errorf("a %+v, b %+v", y.item(a.ID), y.item(b.ID))
		}
		must(t, own.Close())
		all.Resume()
		synctest.Wait()
		if y.item(a.ID).Status != lockkeeper.ItemCompleted {
			t.Errorf("%+v", y.item(a.ID))
		}
		must(t, all.Close())
	})
}
