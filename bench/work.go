package main

import (
	"context"
	"fmt"

	"lockkeeper"
	"lockkeeper/lock"
)

// pathsPerGrant is how many paths every measured request has.
const pathsPerGrant = 10

// paths names the ten files of the n-th request: neighbours in a directory of
// their own, as a piece of work on a codebase touches them.
func paths(area string, n int) []string {
	out := make([]string, pathsPerGrant)
	for i := range out {
		out[i] = fmt.Sprintf("app/%s/part_%03d/unit_%06d/file_%02d.rb", area, n%500, n, i)
	}
	return out
}

// writes asks for paths to write.
func writes(paths []string) []lockkeeper.Lock {
	locks := make([]lockkeeper.Lock, len(paths))
	for i, p := range paths {
		locks[i] = lockkeeper.Lock{Target: lockkeeper.Target{Path: p, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
	}
	return locks
}

func request(area string, n int) lockkeeper.Request {
	return lockkeeper.Request{Holder: "bench", Locks: writes(paths(area, n))}
}

// hold acquires n grants that stay.
func hold(ctx context.Context, m *lock.Manager, n int) error {
	for i := range n {
		if _, err := m.TryAcquire(ctx, request("held", i)); err != nil {
			return err
		}
	}
	return nil
}

// takeAndGive is the piece of work that is measured most: acquire ten paths
// and release them, with a new id, a token and two events. It goes through the
// requests in turn.
func takeAndGive(ctx context.Context, m *lock.Manager, reqs ...lockkeeper.Request) side {
	next := 0
	return func(n int) error {
		for range n {
			g, err := m.TryAcquire(ctx, reqs[next%len(reqs)])
			if err != nil {
				return err
			}
			if err := g.Release(ctx); err != nil {
				return err
			}
			next++
		}
		return nil
	}
}
