package sched_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/sched"
	"lockkeeper/store/storetest"
)

// Workers that are repeatedly started, stopped and closed lose no item and leak no goroutine.
// TestMain checks the goroutines.
//
// shows: SW-52 SW-53 GP-27
func TestStartAndStopUnderStress(t *testing.T) {
	y := newYard(t, sched.Options{MaxAttempts: 1 << 20})
	const items = 400
	var runs atomic.Int64
	run := func(ctx context.Context, job *sched.Job) error {
		runs.Add(1)
		select {
		case <-time.After(time.Duration(rand.IntN(2000)) * time.Microsecond):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for i := range items {
		y.enqueue(sched.ItemSpec{Workflow: fmt.Sprint("w", i), Locks: writes(fmt.Sprint("f", i%7))})
	}
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for range 25 * storetest.Torture() {
				w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1 + n, Node: "here", Run: run})
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
				if rand.IntN(2) == 0 {
					_, err = w.Stop(t.Context())
				} else {
					err = w.Close()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 8, Node: "here", Run: run, UntilEmpty: true})
	must(t, err, w.Wait())
	for _, it := range y.all() {
		if it.Status != lockkeeper.ItemCompleted || it.Attempts != 1 { // closing a worker does not count as a failure
			t.Errorf("%s is %s after %d attempts: %+v", it.ID, it.Status, it.Attempts, it.Failure)
		}
	}
	if runs.Load() < items {
		t.Errorf("%d runs", runs.Load())
	}
}
