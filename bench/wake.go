package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/lock"
)

const (
	wakesPerRound = 20
	pollsPerRound = 2
	pollEvery     = 500 * time.Millisecond
)

// monotonic reads the clock that all processes of a host share.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the clock id is a constant that every Linux has
	}
	return ts.Nano()
}

// contested is the one file that both want.
func contested() lockkeeper.Request {
	return lockkeeper.Request{Holder: "bench", Locks: writes(paths("contested", 1)[:1])}
}

// waitOnce acquires the contested paths in one of two ways, releases them, and
// returns when it got them.
func waitOnce(ctx context.Context, m *lock.Manager, way string) (at int64, err error) {
	var g *lock.Grant
	if way == "wait" {
		g, err = m.Acquire(ctx, contested(), time.Minute)
	} else {
		for g, err = m.TryAcquire(ctx, contested()); lock.IsBlocked(err); g, err = m.TryAcquire(ctx, contested()) {
			time.Sleep(pollEvery)
		}
	}
	at = monotonic()
	if err != nil {
		return 0, err
	}
	return at, g.Release(ctx)
}

// waiter waits as it is told, in this process or another.
type waiter struct {
	begin func(way string) error
	end   func() (at int64, err error)
}

// wakes measures how long it takes from the return of Release, when the lock is
// free for certain, to the return of the waiter, which is in the wait list, or polling,
// by then.
func (b *bench) wakes(ctx context.Context, m *lock.Manager, w waiter) (t wakeTimes, err error) {
	for range b.rounds {
		for range wakesPerRound {
			took, releasing, err := wake(ctx, m, w, "wait")
			if err != nil {
				return t, err
			}
			t.waited, t.releasing = append(t.waited, took), append(t.releasing, releasing)
		}
		for range pollsPerRound {
			took, _, err := wake(ctx, m, w, "poll")
			if err != nil {
				return t, err
			}
			t.polled = append(t.polled, took)
		}
	}
	return t, nil
}

// wakeTimes are in nanoseconds: from the return of Release to that of the
// waiter, the time Release took, and how long a polling waiter took.
type wakeTimes struct{ waited, releasing, polled []float64 }

func wake(ctx context.Context, m *lock.Manager, w waiter, way string) (took, releasing float64, err error) {
	g, err := m.TryAcquire(ctx, contested())
	if err != nil {
		return 0, 0, err
	}
	if err := w.begin(way); err != nil {
		return 0, 0, err
	}
	if way == "wait" {
		for waiting := 0; waiting == 0; {
			entries, err := m.Requests(ctx)
			if err != nil {
				return 0, 0, err
			}
			waiting = len(entries) - 1
			time.Sleep(2 * time.Millisecond) // it went to sleep, too
		}
	} else {
		time.Sleep(20*time.Millisecond + rand.N(pollEvery)) // anywhere between two looks
	}
	from := monotonic()
	if err := g.Release(ctx); err != nil {
		return 0, 0, err
	}
	released := monotonic()
	at, err := w.end()
	return float64(at - released), float64(released - from), err
}

func wakeRow(store string, target float64, format string, unit float64, t wakeTimes) row {
	return row{
		What: store + ": from release to the waiter's return", Peer: ns(median(t.polled)) + " (polling)",
		Ours: fmt.Sprintf("%s (release %s)", ns(median(t.waited)), ns(median(t.releasing))),
		How: "One contested file, from the return of Release to the return of Acquire in " + map[bool]string{true: "another goroutine", false: "another process"}[store == "Memory"] +
			", which confirms the grant with a transaction of its own; in parentheses the duration of Release, to be added for the time from its call; for comparison, a loop that tries every 500 ms.",
	}.atMost(median(t.waited)/unit, target, format)
}

func wakeMemory(ctx context.Context, b *bench) ([]row, error) {
	m := newMemory()
	defer m.Close()
	type got struct {
		at  int64
		err error
	}
	done := make(chan got, 1)
	w := waiter{
		begin: func(way string) error {
			go func() {
				at, err := waitOnce(ctx, m, way)
				done <- got{at, err}
			}()
			return nil
		},
		end: func() (int64, error) { g := <-done; return g.at, g.err },
	}
	t, err := b.wakes(ctx, m, w)
	if err != nil {
		return nil, err
	}
	return []row{wakeRow("Memory", 50, "%.0f µs", 1e3, t)}, nil
}

// elsewhere is a waiter in another process. Where the store is goes through a
// pipe, because a URL may have a password in it.
func elsewhere(ctx context.Context, kind, where string) (waiter, *child, error) {
	c, err := start(ctx, "waiter", kind)
	if err != nil {
		return waiter{}, nil, err
	}
	return waiter{
		begin: c.say,
		end: func() (int64, error) {
			text, err := c.line()
			if err != nil {
				return 0, err
			}
			return strconv.ParseInt(text, 10, 64)
		},
	}, c, c.say(where)
}

func wakeSQLite(ctx context.Context, b *bench) (_ []row, err error) {
	path, err := newSQLite(ctx, b, "wake")
	if err != nil {
		return nil, err
	}
	m, closeAll, err := openSQLite(ctx, path)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	return wakeAcross(ctx, b, m, "SQLite", 1, "sqlite", path)
}

func wakePostgres(ctx context.Context, b *bench) (_ []row, err error) {
	url, drop, err := b.database(ctx, "wake", "one")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	m, closeAll, err := openPostgres(ctx, url, "one")
	if err != nil {
		return nil, err
	}
	defer closeAll()
	return wakeAcross(ctx, b, m, "PostgreSQL", 2, "postgres", url)
}

func wakeAcross(ctx context.Context, b *bench, m *lock.Manager, store string, target float64, kind, where string) (_ []row, err error) {
	w, c, err := elsewhere(ctx, kind, where)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	t, err := b.wakes(ctx, m, w)
	if err != nil {
		return nil, err
	}
	return []row{wakeRow(store, target, "%.2f ms", 1e6, t)}, nil
}

// asWaiter is the other process: it waits as each line says, until the
// input ends.
func asWaiter(ctx context.Context, p *parent, args []string) error {
	where, err := p.line()
	if err != nil {
		return err
	}
	var m *lock.Manager
	var closeAll func() error
	if args[0] == "sqlite" {
		m, closeAll, err = openSQLite(ctx, where)
	} else {
		m, closeAll, err = openPostgres(ctx, where, "one")
	}
	if err != nil {
		return err
	}
	defer closeAll()
	for {
		way, err := p.line()
		if err != nil {
			return nil // the parent is done
		}
		at, err := waitOnce(ctx, m, way)
		if err != nil {
			return err
		}
		if err := p.say(fmt.Sprint(at)); err != nil {
			return err
		}
	}
}
