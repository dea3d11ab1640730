//go:build unix

package progress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"lockkeeper/internal/machine/filelock"
)

// lockFolder waits for the exclusive lock on a folder, across processes. The kernel releases the
// lock when its process dies. A missing folder has no lock, but its first write still detects a
// conflict.
func lockFolder(ctx context.Context, dir string) (release func() error, err error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	taken, err := filelock.Await(ctx, f, func() { _ = f.Close() }) // the caller has returned, so the error has no receiver
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	case !taken:
		return nil, fmt.Errorf("another process holds the lock on %s: %w", dir, context.Cause(ctx))
	}
	return f.Close, nil
}
