package sched_test

import (
	"context"
	"fmt"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store/memstore"
)

// Two items need the same file, and a third waits for both. They run one after the other,
// however many slots there are.
func Example() {
	ctx := context.Background()
	store := memstore.New("my-project", memstore.Options{})
	locks := lock.New(store, lock.Options{})
	defer locks.Close()
	queue, err := sched.New(store, locks, sched.Options{Phases: sched.Phases{{"verify"}, {"apply", sched.DefaultPhase}}})
	if err != nil {
		panic(err)
	}
	user := []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "app/models/user.rb", Kind: lockkeeper.File}, Mode: lockkeeper.Write}}
	_, err = queue.Enqueue(ctx,
		sched.ItemSpec{Workflow: "rate limiting", Key: "a", Phase: "apply", Locks: user},
		sched.ItemSpec{Workflow: "audit log", Key: "b", Phase: "apply", Locks: user},
		sched.ItemSpec{Workflow: "release notes", Phase: "verify", After: []string{"a", "b"}})
	if err != nil {
		panic(err)
	}
	worker, err := queue.Start(ctx, sched.WorkerOptions{Slots: 4, UntilEmpty: true, Run: func(ctx context.Context, job *sched.Job) error {
		fmt.Println(job.Item.Workflow) // ctx is canceled if the locks are lost
		return nil
	}})
	if err != nil {
		panic(err)
	}
	if err := worker.Wait(); err != nil {
		panic(err)
	}
	// Output:
	// rate limiting
	// audit log
	// release notes
}
