package gate_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/lock"
	"lockkeeper/store/memstore"
	"lockkeeper/tree"
)

// A program that embeds Lockkeeper locks the files of a change, lets the gate land
// it, and undoes it.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, ".lockkeeper"), 0o700); err != nil {
		log.Fatal(err)
	}

	root, err := tree.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer root.Close()
	store := memstore.New("7f0c7a39-7d5a-4b55-9f5e-1f3c1c3b7c11", memstore.Options{})
	defer store.Close()
	var door *gate.Gate
	locks := lock.New(store, lock.Options{RecoverLandings: func(ctx context.Context, id string) error { return door.RecoverLandings(ctx, id) }})
	defer locks.Close()
	if door, err = gate.Open(root, store, locks, gate.Options{Allowed: []string{"app/models"}}); err != nil {
		log.Fatal(err)
	}
	defer door.Close(ctx)

	target, err := root.Resolve("", "app/models/user.rb", lockkeeper.Write)
	if err != nil {
		log.Fatal(err)
	}
	grant, err := locks.TryAcquire(ctx, lockkeeper.Request{Holder: "fix-user", Locks: []lockkeeper.Lock{target}})
	if err != nil {
		log.Fatal(err)
	}

	landing, err := door.Write(ctx, &grant.Grant, "app/models/user.rb", []byte("class User\nend\n"))
	if err != nil {
		log.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "app/models/user.rb"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", content)

	_, err = door.Write(ctx, &grant.Grant, "app/models/order.rb", []byte("class Order\nend\n"))
	var refused *lockkeeper.LockViolationError
	if errors.As(err, &refused) {
		fmt.Println(refused.Path, "was refused by the check of its", refused.Check)
	}

	if _, err := door.Undo(ctx, &grant.Grant, landing.Seq); err != nil {
		log.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(dir, "app/models/user.rb"))
	fmt.Println("rolled back:", errors.Is(err, os.ErrNotExist))
	if err := grant.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// class User
	// end
	// app/models/order.rb was refused by the check of its coverage
	// rolled back: true
}
