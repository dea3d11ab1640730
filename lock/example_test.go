package lock_test

import (
	"context"
	"fmt"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store/memstore"
)

// file returns a lock on one file.
func file(mode lockkeeper.Mode, path string) lockkeeper.Lock {
	return lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: mode}
}

// A program requests all its locks at once. They are granted as a whole, or the error names the
// holder of each conflicting lock.
func ExampleManager_TryAcquire() {
	ctx := context.Background()
	m := lock.New(memstore.New("book", memstore.Options{}), lock.Options{})
	defer m.Close()

	ada, err := m.TryAcquire(ctx, lockkeeper.Request{Holder: "Ada", Locks: []lockkeeper.Lock{
		file(lockkeeper.Write, "app/models/user.rb"),
		file(lockkeeper.Read, "config/routes.rb"),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ada.Release(ctx)
	fmt.Println("Ada may write", ada.Paths(lockkeeper.Write))

	_, err = m.TryAcquire(ctx, lockkeeper.Request{Holder: "Bob", Locks: []lockkeeper.Lock{
		file(lockkeeper.Write, "config/routes.rb"),
		file(lockkeeper.Write, "README.md"),
	}})
	if blocked, ok := err.(*lockkeeper.BlockedError); ok {
		for _, c := range blocked.Conflicts {
			fmt.Printf("Bob cannot %s %s: %s has it for %s\n", c.Mode, c.Path, c.Holder, c.BlockingMode)
		}
	}
	// Output:
	// Ada may write [app/models/user.rb]
	// Bob cannot write config/routes.rb: Ada has it for read
}

// A request waits in the wait list. The first request is granted first, and the wait is
// bounded.
func ExampleManager_Acquire() {
	ctx := context.Background()
	m := lock.New(memstore.New("book", memstore.Options{}), lock.Options{})
	defer m.Close()

	request := func(holder string) lockkeeper.Request {
		return lockkeeper.Request{Holder: holder, Locks: []lockkeeper.Lock{file(lockkeeper.Write, "README.md")}}
	}
	ada, err := m.Acquire(ctx, request("Ada"), time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = m.Acquire(ctx, request("Bob"), 10*time.Millisecond)
	fmt.Println("Bob:", lockkeeper.CodeOf(err))

	if err := ada.Release(ctx); err != nil {
		fmt.Println(err)
	}
	bob, err := m.Acquire(ctx, request("Bob"), time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("Bob's fence is above Ada's:", bob.Fence > ada.Fence)
	// Output:
	// Bob: timeout
	// Bob's fence is above Ada's: true
}

// Work runs under the context of the grant, which ends when the grant does.
func ExampleGrant_Context() {
	ctx := context.Background()
	m := lock.New(memstore.New("book", memstore.Options{}), lock.Options{})
	defer m.Close()

	g, err := m.TryAcquire(ctx, lockkeeper.Request{Holder: "agent 7", Locks: []lockkeeper.Lock{file(lockkeeper.Write, "a.go")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	g.Keep() // renew it for as long as the work takes
	work := g.Context()
	fmt.Println("working:", work.Err() == nil)

	admin := lockkeeper.Actor{Name: "Grace", Kind: lockkeeper.ActorAdmin}
	if err := m.ForceRelease(ctx, g.ID, admin, "the release is due"); err != nil {
		fmt.Println(err)
		return
	}
	<-work.Done()
	fmt.Println("stopped:", lockkeeper.CodeOf(context.Cause(work)))
	// Output:
	// working: true
	// stopped: not_held
}
