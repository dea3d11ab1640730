package gate

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// A turn orders recoveries that have fenced each other. Without it they would all try
// again at once, and fence each other again. It is a lock on the directory of all
// recoveries, which ends with its process.
type turn struct {
	g    *Gate
	dir  *os.File // nil: nobody was met yet
	mine bool
}

// wait waits for the turn, and for the process that works on a landing to end it. It
// does not wait for long, because that process may be stopped: no promise depends on
// the turn.
func (t *turn) wait(ctx context.Context, l *lockkeeper.Landing, limit time.Duration) (err error) {
	if t.dir == nil {
		if t.dir, err = t.g.disk.OpenDir(t.g.recovs, "."); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNotInTime)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if !t.mine {
			if t.mine, err = lockStage(t.dir, unix.LOCK_EX); err != nil {
				return err
			}
		}
		busy, err := t.g.isBusy(l)
		if err != nil || t.mine && !busy {
			return err
		}
		select {
		case <-time.After(wait): // a lock on a file rings no bell
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, errNotInTime) {
				return err
			}
			return nil
		}
	}
}

// end lets the next recovery have its turn.
func (t *turn) end() {
	if t.dir != nil {
		t.dir.Close() // nothing was written through it
	}
}

// errNotInTime says that another recovery was not done in time.
var errNotInTime = errors.New("another recovery is still at work")
