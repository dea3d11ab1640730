package main

import (
	"fmt"
	"os"
	"path/filepath"

	"lockkeeper"
	"lockkeeper/lock"
)

// pathsPerGrant is the number of paths in every measured request.
const pathsPerGrant = 10

// paths returns the ten files of the n-th request. They are in one directory of
// their own, as in a typical change of a codebase.
func paths(area string, n int) []string {
	out := make([]string, pathsPerGrant)
	for i := range out {
		out[i] = fmt.Sprintf("app/%s/part_%03d/unit_%06d/file_%02d.rb", area, n%500, n, i)
	}
	return out
}

func writes(paths ...string) []lockkeeper.Lock {
	locks := make([]lockkeeper.Lock, len(paths))
	for i, p := range paths {
		locks[i] = lockkeeper.Lock{Target: lockkeeper.Target{Path: p, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
	}
	return locks
}

func request(area string, n int) lockkeeper.Request {
	return lockkeeper.Request{Holder: "bench", Locks: writes(paths(area, n)...)}
}

// hold acquires n grants that stay.
func (b *bench) hold(m *lock.Manager, n int) {
	for i := range n {
		get(m.TryAcquire(b.ctx, request("held", i)))
	}
}

// acquireAndRelease is the piece of work that most comparisons measure: it acquires ten paths
// and releases them, with a new id, a token and two events. It goes through the
// requests in turn.
func (b *bench) acquireAndRelease(m *lock.Manager, reqs ...lockkeeper.Request) side {
	next := 0
	return times(func() {
		check(get(m.TryAcquire(b.ctx, reqs[next%len(reqs)])).Release(b.ctx))
		next++
	})
}

func writeFile(file string, content []byte) {
	check(os.MkdirAll(filepath.Dir(file), 0o755))
	check(os.WriteFile(file, content, 0o644))
}
