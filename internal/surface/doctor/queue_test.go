package doctor_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/doctor"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// The doctor reports an item that could start beside a worker that does nothing.
func TestStalledQueue(t *testing.T) {
	s := settings(t, nil)
	a, err := project.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	q, err := job.Open(a)
	if err == nil {
		_, err = q.Enqueue(t.Context(), sched.ItemSpec{Workflow: "idle", By: lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}})
	}
	if err != nil {
		t.Fatal(err)
	}
	reported := func() view.Check {
		t.Helper()
		r, err := doctor.Examine(t.Context(), s)
		i := slices.IndexFunc(r.Checks, func(c view.Check) bool { return c.Name == "queue" })
		if err != nil || i < 0 {
			t.Fatalf("%v, checks %v", err, r.Checks)
		}
		return r.Checks[i]
	}
	if c := reported(); !c.OK {
		t.Errorf("without a worker: %+v", c)
	}
	err = a.Store.Update(t.Context(), func(tx store.Tx) error {
		return tx.PutWorker(lockkeeper.Worker{ID: "w", Slots: 1, Expires: tx.Now().Lease.Add(time.Hour)})
	})
	if err := errors.Join(err, a.Close()); err != nil {
		t.Fatal(err)
	}
	if c := reported(); c.OK || c.Next != "lockkeeper why j1" {
		t.Errorf("with an idle worker: %+v", c)
	}
}
