package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store/memstore"
)

// stuck is a fake of lock.Processes whose processes are dead and whose leftovers cannot be
// ended.
type stuck struct{}

func (stuck) Liveness(lockkeeper.Process) lockkeeper.Liveness { return lockkeeper.ProcessDead }

func (stuck) Exited(context.Context, lockkeeper.Process) <-chan struct{} { return nil }

func (stuck) EndLeftovers(context.Context, lockkeeper.Process, string) error {
	return errors.New("it will not end")
}

func (s stuck) EndWork(ctx context.Context, p lockkeeper.Process, id string) error {
	return s.EndLeftovers(ctx, p, id)
}

// If an expired blocker cannot be freed, the waiter checks it again at the slow polling rate.
//
// shows: DL-74
func TestWaitingDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := lock.New(memstore.New("test", memstore.Options{}), lock.Options{Processes: stuck{}})
		req := lockkeeper.Request{Holder: "h", TTL: time.Second, Process: &lockkeeper.Process{PID: 1}, Locks: []lockkeeper.Lock{file(lockkeeper.Write, "x")}}
		if _, err := m.TryAcquire(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		req.Process = nil
		_, err := m.Acquire(t.Context(), req, time.Minute)
		var late *lockkeeper.LockTimeoutError
		if !errors.As(err, &late) || late.Attempts > 20 {
			t.Errorf("%+v; want a timeout after about 12 looks", err)
		}
	})
}

// exiting is a fake of lock.Processes with one process whose end can be watched.
type exiting struct{ gone chan struct{} }

func (e exiting) Liveness(lockkeeper.Process) lockkeeper.Liveness {
	select {
	case <-e.gone:
		return lockkeeper.ProcessDead
	default:
		return lockkeeper.ProcessAlive
	}
}

func (e exiting) Exited(context.Context, lockkeeper.Process) <-chan struct{} { return e.gone }

func (e exiting) EndLeftovers(context.Context, lockkeeper.Process, string) error { return nil }

func (e exiting) EndWork(context.Context, lockkeeper.Process, string) error { return nil }

// A waiter gets its grant as soon as the process of its blocker ends.
//
// shows: SW-71 GP-14
func TestWaitingSeesExit(t *testing.T) {
	for _, holders := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			e := exiting{make(chan struct{})}
			m := lock.New(memstore.New("test", memstore.Options{}), lock.Options{Processes: e})
			for i := range holders {
				_, err := m.TryAcquire(t.Context(), lockkeeper.Request{Holder: "h", Process: &lockkeeper.Process{PID: i + 1},
					Locks: []lockkeeper.Lock{file(lockkeeper.Read, "x")}})
				if err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			time.AfterFunc(time.Second, func() { close(e.gone) })
			g, err := m.Acquire(t.Context(), lockkeeper.Request{Holder: "w", Locks: []lockkeeper.Lock{file(lockkeeper.Write, "x")}}, time.Minute)
			if err != nil || time.Since(began) != time.Second {
				t.Errorf("%+v, %v after %v; want it as soon as the holders are gone", g, err, time.Since(began))
			}
		})
	}
}
