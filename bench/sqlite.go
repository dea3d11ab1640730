package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"lockkeeper/lock"
)

const diskSlice = 50 * time.Millisecond

func sqliteMinimal(ctx context.Context, b *bench) ([]row, error) {
	m, closeOurs, err := freshSQLite(ctx, b, "ours")
	if err != nil {
		return nil, err
	}
	defer closeOurs()
	path, err := newSQLite(ctx, b, "minimal")
	if err != nil {
		return nil, err
	}
	peer, err := openMinimalSQLite(ctx, path, "minimal", request("asked", 1))
	if err != nil {
		return nil, err
	}
	defer peer.close()
	t, err := b.race(diskSlice, takeAndGive(ctx, m, request("asked", 1)), peer.side)
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "SQLite: speed relative to the minimal transaction", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "Acquire and release of ten paths, WAL and synchronous=FULL, against two hand-written transactions in another database with the same tables, driver and settings, which insert and delete the same rows through prepared statements and check nothing.",
	}.atLeast(median(ratios(t[1], t[0])), 0.75, "%.2f")}, nil
}

func freshSQLite(ctx context.Context, b *bench, name string) (*lock.Manager, func() error, error) {
	path, err := newSQLite(ctx, b, name)
	if err != nil {
		return nil, nil, err
	}
	return openSQLite(ctx, path)
}

func sqliteGrowth(ctx context.Context, b *bench) ([]row, error) {
	few, closeFew, err := freshSQLite(ctx, b, "empty")
	if err != nil {
		return nil, err
	}
	defer closeFew()
	many, closeMany, err := freshSQLite(ctx, b, "full")
	if err != nil {
		return nil, err
	}
	defer closeMany()
	if err := hold(ctx, many, 10_000); err != nil {
		return nil, err
	}
	t, err := b.race(diskSlice, takeAndGive(ctx, many, spread()...), takeAndGive(ctx, few, spread()...))
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "SQLite: 100,000 held paths to none", Ours: ns(median(t[0])), Peer: ns(median(t[1])) + " (ours, none)",
		How: "The same acquire and release, over 256 requests in turn, beside 10,000 active grants of ten paths and in an empty database.",
	}.atMost(100*(median(ratios(t[0], t[1]))-1), 25, "%+.1f %%")}, nil
}

// served is what one of several contending processes reports.
type served struct {
	Times   int           `json:"times"`
	Longest time.Duration `json:"longest"` // acquire or release, the longest single call
}

const (
	contenders  = 8
	contendFor  = 2 * time.Second
	ourWay      = "lockkeeper"
	busyTimeout = "busy-timeout"
)

func sqliteProcesses(ctx context.Context, b *bench) ([]row, error) {
	var fairOurs, fairPeer, longOurs, longPeer, sumOurs, sumPeer []float64
	for round := range b.rounds {
		for _, way := range []string{ourWay, busyTimeout} {
			path, err := newSQLite(ctx, b, fmt.Sprintf("%s-%d", way, round))
			if err != nil {
				return nil, err
			}
			all, err := contend(ctx, way, path)
			if err != nil {
				return nil, err
			}
			least, most, sum, longest := all[0].Times, 0, 0, time.Duration(0)
			for _, s := range all {
				least, most, sum, longest = min(least, s.Times), max(most, s.Times), sum+s.Times, max(longest, s.Longest)
			}
			fair := float64(least) / float64(most)
			if way == ourWay {
				fairOurs, longOurs, sumOurs = append(fairOurs, fair), append(longOurs, float64(longest)), append(sumOurs, float64(sum))
			} else {
				fairPeer, longPeer, sumPeer = append(fairPeer, fair), append(longPeer, float64(longest)), append(sumPeer, float64(sum))
			}
		}
	}
	perSecond := func(sums []float64) string {
		return fmt.Sprintf("%.0f/s", median(sums)/contendFor.Seconds())
	}
	how := fmt.Sprintf("Eight processes acquire and release ten paths of their own each in one database for %s; the peer is the minimal transaction with SQLite's busy timeout alone.", contendFor)
	return []row{
		row{What: "SQLite: 8 processes, least served to most served",
			Ours: fmt.Sprintf("%.2f, %s", median(fairOurs), perSecond(sumOurs)), Peer: fmt.Sprintf("%.2f, %s", median(fairPeer), perSecond(sumPeer)), How: how,
		}.atLeast(median(fairOurs), 0.8, "%.2f"),
		row{What: "SQLite: 8 processes, longest wait", Ours: ns(slices.Max(longOurs)), Peer: ns(slices.Max(longPeer)),
			How: "In the same runs, the longest single acquire or release of any process in any round, with its own writing.",
		}.atMost(slices.Max(longOurs)/1e6, 100, "%.0f ms"),
	}, nil
}

// contend runs the processes, and starts them together.
func contend(ctx context.Context, way, path string) (all []served, err error) {
	children := make([]*child, contenders)
	for i := range children {
		if children[i], err = start(ctx, "contender", way, path, strconv.Itoa(i)); err != nil {
			return nil, err
		}
		defer children[i].stop()
	}
	for _, c := range children {
		if _, err := c.line(); err != nil { // it is ready
			return nil, err
		}
	}
	for _, c := range children {
		if err := c.say("go"); err != nil {
			return nil, err
		}
	}
	for _, c := range children {
		text, err := c.line()
		if err != nil {
			return nil, err
		}
		var s served
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// asContender is one of the contending processes.
func asContender(ctx context.Context, p *parent, args []string) (err error) {
	way, path := args[0], args[1]
	number, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	var acts []func() error // what is timed one by one
	if way == ourWay {
		m, closeAll, err := openSQLite(ctx, path)
		if err != nil {
			return err
		}
		defer closeAll()
		var g *lock.Grant
		req := request("asked", number)
		acts = append(acts,
			func() (err error) { g, err = m.TryAcquire(ctx, req); return err },
			func() error { return g.Release(ctx) })
	} else {
		peer, err := openMinimalSQLite(ctx, path, args[2], request("asked", number))
		if err != nil {
			return err
		}
		defer peer.close()
		acts = append(acts, peer.takeAndGive)
	}
	if err := errors.Join(p.say("ready"), p.wait("go")); err != nil {
		return err
	}
	var s served
	for began := time.Now(); time.Since(began) < contendFor; s.Times++ {
		for _, act := range acts {
			from := time.Now()
			if err := act(); err != nil {
				return err
			}
			s.Longest = max(s.Longest, time.Since(from))
		}
	}
	return p.sayJSON(s)
}
