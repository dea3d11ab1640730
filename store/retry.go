package store

import (
	"context"
	"math/rand/v2"
	"time"

	"lockkeeper"
)

// Pauses between attempts, after failures that may end by themselves.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// Pause returns how long to wait before another attempt, after some attempts failed. It is random, so that
// clients of a server that restarts do not come back at the same moment.
func Pause(failed int) time.Duration {
	pause := min(firstPause<<min(failed, 10), longestPause)
	return pause/2 + rand.N(pause/2)
}

// Retry runs fn again while it returns a temporary error of the store, at most for the time limit and until ctx
// ends. It returns the error of the last attempt.
func Retry(ctx context.Context, limit time.Duration, fn func() error) error {
	began := time.Now()
	for failed := 0; ; failed++ {
		err := fn()
		pause := Pause(failed)
		if !lockkeeper.IsTemporary(err) || time.Since(began)+pause > limit {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
