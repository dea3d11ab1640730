package filelock_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/internal/machine/filelock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func opened(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A waiter gets the lock when it is released. A canceled waiter calls leave and does not
// block others.
func TestAwait(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first, second, third := opened(t, name), opened(t, name), opened(t, name)
	if err := filelock.Wait(first); err != nil {
		t.Fatal(err)
	}
	if got, err := filelock.Try(second); got || err != nil {
		t.Fatalf("held by first; Try: %v %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	cancel()
	if got, err := filelock.Await(ctx, second, func() { left <- second.Close() }); got || err != nil {
		t.Fatalf("canceled; Await: %v %v", got, err)
	}
	if err := filelock.Unlock(first); err != nil {
		t.Fatal(err)
	}
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	if got, err := filelock.Await(t.Context(), third, func() {}); !got || err != nil {
		t.Fatalf("free; Await: %v %v", got, err)
	}
	if got, err := filelock.Try(first); got || err != nil {
		t.Fatalf("held by third; Try: %v %v", got, err)
	}
}

// Shared locks coexist and exclude an exclusive one.
func TestShare(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first, second, third := opened(t, name), opened(t, name), opened(t, name)
	for _, f := range []*os.File{first, second} {
		if err := filelock.Share(f); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := filelock.Try(third); got || err != nil {
		t.Fatalf("shared by two; Try: %v %v", got, err)
	}
	for _, f := range []*os.File{first, second} {
		if err := filelock.Unlock(f); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := filelock.Try(third); !got || err != nil {
		t.Fatalf("free; Try: %v %v", got, err)
	}
}
