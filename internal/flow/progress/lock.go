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

// lockFolder waits until nobody else, of all processes, changes the documents of a folder. The
// kernel gives the turn on when a process dies. A folder that is not there yet has none:
// what is written first into it is still compared and swapped.
func lockFolder(ctx context.Context, dir string) (release func() error, err error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	taken, err := filelock.Await(ctx, f, func() { _ = f.Close() }) // nobody is there to hear how it ended
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	case !taken:
		return nil, fmt.Errorf("another process holds the lock on %s: %w", dir, context.Cause(ctx))
	}
	return f.Close, nil
}
