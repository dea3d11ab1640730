package sched_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/sched"
)

// A report is one call of WorkerOptions.OnEnd.
type report struct {
	status  lockkeeper.ItemStatus
	attempt int
	reason  string
}

// reports records the calls of WorkerOptions.OnEnd.
type reports struct {
	mu   sync.Mutex
	list []report
}

func (r *reports) add(it lockkeeper.Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := report{status: it.Status, attempt: it.Attempts}
	if it.Failure != nil {
		one.reason = it.Failure.Reason
	}
	r.list = append(r.list, one)
}

func (r *reports) all() []report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// An attempt that loses its grant and returns only after a later attempt has completed
// the item is still reported first, as requeued.
func TestEndOfALateAttempt(t *testing.T) {
	y := newYard(t, sched.Options{})
	y.enqueue(sched.ItemSpec{Workflow: "robbed", Locks: writes("a")})
	var got reports
	completed := make(chan struct{})
	complete := sync.OnceFunc(func() { close(completed) })
	w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 2, Node: "here", TickEvery: time.Millisecond,
		OnEnd: func(it lockkeeper.Item) {
			got.add(it)
			if it.Status == lockkeeper.ItemCompleted {
				complete()
			}
		},
		Run: func(ctx context.Context, job *sched.Job) error {
			if job.Item.Attempts > 1 {
				return nil
			}
			must(t, y.locks.ForceRelease(ctx, job.Grant.ID, ada, "taken"))
			<-completed
			return context.Cause(ctx)
		}})
	must(t, err)
	<-completed
	_, err = w.Stop(t.Context())
	must(t, err)
	want := []report{{status: lockkeeper.ItemQueued, attempt: 1}, {status: lockkeeper.ItemCompleted, attempt: 2}}
	if !slices.Equal(got.all(), want) {
		t.Errorf("reported %+v, want %+v", got.all(), want)
	}
}

// An attempt that was canceled is reported as failed, even if a person retried the item
// and another worker completed it before the attempt returned.
func TestEndOfACanceledAttempt(t *testing.T) {
	y := newYard(t, sched.Options{})
	it := y.enqueue(sched.ItemSpec{Workflow: "canceled", Locks: writes("a")})
	var got reports
	began, completed := make(chan struct{}), make(chan struct{})
	w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1, Node: "here", OnEnd: got.add, TickEvery: time.Millisecond,
		Run: func(ctx context.Context, _ *sched.Job) error {
			close(began)
			<-completed
			return nil
		}})
	must(t, err)
	<-began
	_, err = y.queue.Cancel(t.Context(), it.ID, ada, "not needed")
	must(t, err)
	_, err = y.queue.Retry(t.Context(), it.ID, ada)
	must(t, err)
	y.finish(y.claim(), nil)
	close(completed)
	_, err = w.Stop(t.Context())
	must(t, err)
	want := []report{{status: lockkeeper.ItemError, attempt: 1, reason: "canceled by ada: not needed"}}
	if !slices.Equal(got.all(), want) {
		t.Errorf("reported %+v, want %+v", got.all(), want)
	}
}

// If a worker takes a requeued item again, its attempts are reported in order. The
// second attempt may end before the callback of the first one.
func TestEndsOfOneItemInOrder(t *testing.T) {
	y := newYard(t, sched.Options{})
	const attempts = 200
	y.enqueue(sched.ItemSpec{Workflow: "later"})
	var got reports
	w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 4, Node: "here", UntilEmpty: true,
		OnEnd: func(it lockkeeper.Item) {
			if it.Status == lockkeeper.ItemQueued && len(got.all())%2 == 0 {
				time.Sleep(time.Millisecond) // gives a later attempt time to overtake
			}
			got.add(it)
		},
		Run: func(_ context.Context, job *sched.Job) error {
			if n := len(y.events(lockkeeper.EventRequeued)); n < attempts {
				return &sched.LaterError{Reason: fmt.Sprint(n)}
			}
			return nil
		}})
	must(t, err, w.Wait())
	list := got.all()
	if len(list) != attempts+1 {
		t.Fatalf("%d reports, want %d", len(list), attempts+1)
	}
	for i, one := range list {
		want := lockkeeper.ItemQueued
		if i == attempts {
			want = lockkeeper.ItemCompleted
		}
		if one.status != want {
			t.Errorf("report %d: %s", i, one.status)
		}
	}
}

// If an earlier attempt returns late, the worker does not treat the running attempt as a stray.
func TestLateAttemptIsNoStray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, sched.Options{})
		it := y.enqueue(sched.ItemSpec{Workflow: "robbed", Locks: writes("a")})
		second := make(chan struct{})
		w := y.worker(2, func(ctx context.Context, job *sched.Job) error {
			if job.Item.Attempts > 1 {
				close(second)
				return takes(5*time.Minute)(ctx, job)
			}
			must(t, y.locks.ForceRelease(ctx, job.Grant.ID, ada, "taken"))
			<-second
			return context.Cause(ctx)
		})
		time.Sleep(10 * time.Minute)
		_, err := w.Stop(t.Context())
		must(t, err)
		if it := y.item(it.ID); it.Status != lockkeeper.ItemCompleted || it.Attempts != 2 {
			t.Errorf("%s after %d attempts, want completed after 2", it.Status, it.Attempts)
		}
	})
}
