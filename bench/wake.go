package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
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
		panic(err) // cannot fail: every Linux has this clock
	}
	return ts.Nano()
}

// contested returns the request for the one file that both sides want.
func contested() lockkeeper.Request {
	return lockkeeper.Request{Holder: "bench", Locks: writes(paths("contested", 1)[:1]...)}
}

// waitOnce acquires the contested file in one of two ways, releases it, and
// returns the time at which it had acquired it.
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

// A waiter waits in a given way, in this process or another.
type waiter struct {
	begin func(way string)
	end   func() (at int64)
}

// wakes measures the time from the return of Release, when the lock is certainly
// free, to the return of the waiter. By then the waiter is in the wait list, or polls.
func (b *bench) wakes(m *lock.Manager, w waiter) (t wakeTimes) {
	for range b.rounds {
		for range wakesPerRound {
			took, releasing := b.wake(m, w, "wait")
			t.waited, t.releasing = append(t.waited, took), append(t.releasing, releasing)
		}
		for range pollsPerRound {
			took, _ := b.wake(m, w, "poll")
			t.polled = append(t.polled, took)
		}
	}
	return t
}

// wakeTimes has durations in nanoseconds. waited is from the return of Release to the return of
// the waiter, and polled to the return of a polling waiter. releasing is the duration of Release
// itself.
type wakeTimes struct{ waited, releasing, polled []float64 }

func (b *bench) wake(m *lock.Manager, w waiter, way string) (took, releasing float64) {
	g := get(m.TryAcquire(b.ctx, contested()))
	w.begin(way)
	if way == "wait" {
		for waiting := 0; waiting == 0; {
			waiting = len(get(m.Requests(b.ctx))) - 1
			time.Sleep(2 * time.Millisecond) // gives the waiter time to fall asleep
		}
	} else {
		time.Sleep(20*time.Millisecond + rand.N(pollEvery)) // a random wait, so that the release may come at any moment between two polls
	}
	from := monotonic()
	check(g.Release(b.ctx))
	released := monotonic()
	return float64(w.end() - released), float64(released - from)
}

func wakeRow(store string, target float64, format string, unit float64, t wakeTimes) row {
	return row{
		What: store + ": from release to the waiter's return", Peer: ns(median(t.polled)) + " (polling)",
		Ours: fmt.Sprintf("%s (release %s)", ns(median(t.waited)), ns(median(t.releasing))),
		How: "One file is contested. The time is from the return of Release to the return of Acquire in " + map[bool]string{true: "another goroutine", false: "another process"}[store == "Memory"] +
			". Acquire confirms the grant with a transaction of its own. The duration of Release is in parentheses: add it for the time from the call of Release. The peer is a loop that tries every 500 ms.",
	}.atMost(median(t.waited)/unit, target, format)
}

func wakeMemory(b *bench) []row {
	m := b.newMemory()
	var at int64
	var err error
	done := make(chan struct{}, 1)
	t := b.wakes(m, waiter{
		begin: func(way string) {
			go func() {
				at, err = waitOnce(b.ctx, m, way)
				done <- struct{}{}
			}()
		},
		end: func() int64 { <-done; return get(at, err) },
	})
	return []row{wakeRow("Memory", 50, "%.0f µs", 1e3, t)}
}

func wakeSQLite(b *bench) []row {
	path := b.createSQLite(filepath.Join(b.dir, "wake.db"))
	return wakeAcross(b, b.manager(b.openSQLite(path), lock.Options{}), "SQLite", 1, "sqlite", path)
}

func wakePostgres(b *bench) []row {
	url := b.database("wake", "one")
	return wakeAcross(b, b.openPostgres(url, "one"), "PostgreSQL", 2, "postgres", url)
}

// wakeAcross measures a waiter in another process. The location of the store goes through a
// pipe, because a URL may contain a password.
func wakeAcross(b *bench, m *lock.Manager, store string, target float64, kind, where string) []row {
	c := b.start("waiter", kind)
	c.say(where)
	t := b.wakes(m, waiter{begin: c.say, end: func() int64 { return get(strconv.ParseInt(c.line(), 10, 64)) }})
	return []row{wakeRow(store, target, "%.2f ms", 1e6, t)}
}

// asWaiter is the main function of the other process. It waits in the way that each line
// names, until the input ends.
func asWaiter(b *bench, p *parent, args []string) {
	where := get(p.line())
	var m *lock.Manager
	if args[0] == "sqlite" {
		m = b.manager(b.openSQLite(where), lock.Options{})
	} else {
		m = b.openPostgres(where, "one")
	}
	for {
		way, err := p.line()
		if err != nil {
			return // the parent is done
		}
		p.say(fmt.Sprint(get(waitOnce(b.ctx, m, way))))
	}
}
