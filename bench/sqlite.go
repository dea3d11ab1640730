package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"lockkeeper/lock"
)

const diskSlice = 50 * time.Millisecond

func sqliteMinimal(b *bench) []row {
	m := b.freshSQLite("ours")
	peer := openMinimalSQLite(b, b.createSQLite(filepath.Join(b.dir, "minimal.db")), "minimal", request("asked", 1))
	t := b.race(diskSlice, b.acquireAndRelease(m, request("asked", 1)), times(peer.acquireAndRelease))
	return []row{row{
		What: "SQLite: speed relative to the minimal transaction", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "Ten paths are acquired and released, with WAL and synchronous=FULL. The peer is two hand-written transactions in another database with the same tables, driver and settings. They insert and delete the same rows through prepared statements and check nothing.",
	}.atLeast(median(ratios(t[1], t[0])), 0.75, "%.2f")}
}

func (b *bench) freshSQLite(name string) *lock.Manager {
	return b.manager(b.openSQLite(b.createSQLite(filepath.Join(b.dir, name+".db"))), lock.Options{})
}

func sqliteGrowth(b *bench) []row {
	few, many := b.freshSQLite("empty"), b.freshSQLite("full")
	b.hold(many, 10_000)
	t := b.race(diskSlice, b.acquireAndRelease(many, spread()...), b.acquireAndRelease(few, spread()...))
	return []row{row{
		What: "SQLite: 100,000 held paths to none", Ours: ns(median(t[0])), Peer: ns(median(t[1])) + " (ours, none)",
		How: "256 requests are acquired and released in turn, beside 10,000 active grants of ten paths, and in an empty database.",
	}.atMost(100*(median(ratios(t[0], t[1]))-1), 25, "%+.1f %%")}
}

// A served is the report of one of several contending processes.
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

func sqliteProcesses(b *bench) []row {
	fair, long, sums := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	for round := range b.rounds {
		for _, way := range []string{ourWay, busyTimeout} {
			all := contend(b, way, b.createSQLite(filepath.Join(b.dir, fmt.Sprintf("%s-%d.db", way, round))))
			least, most, sum, longest := all[0].Times, 0, 0, time.Duration(0)
			for _, s := range all {
				least, most, sum, longest = min(least, s.Times), max(most, s.Times), sum+s.Times, max(longest, s.Longest)
			}
			fair[way] = append(fair[way], float64(least)/float64(most))
			long[way] = append(long[way], float64(longest))
			sums[way] = append(sums[way], float64(sum))
		}
	}
	told := func(way string) string {
		return fmt.Sprintf("%.2f, %.0f/s", median(fair[way]), median(sums[way])/contendFor.Seconds())
	}
	how := fmt.Sprintf("For %s, eight processes each acquire and release ten paths of their own in one database. The peer is the minimal transaction with SQLite's busy timeout alone.", contendFor)
	return []row{
		row{What: "SQLite: 8 processes, least served to most served",
			Ours: told(ourWay), Peer: told(busyTimeout), How: how,
		}.atLeast(median(fair[ourWay]), 0.8, "%.2f"),
		row{What: "SQLite: 8 processes, longest wait", Ours: ns(slices.Max(long[ourWay])), Peer: ns(slices.Max(long[busyTimeout])),
			How: "This is the longest acquire or release, with its own write, of any process in any round of the same runs.",
		}.atMost(slices.Max(long[ourWay])/1e6, 100, "%.0f ms"),
	}
}

// contend runs the processes, which all start their work at the same time.
func contend(b *bench, way, path string) (all []served) {
	own := &bench{ctx: b.ctx} // ends the processes before the next round
	check(own.measure(func() {
		children := make([]*child, contenders)
		for i := range children {
			children[i] = own.start("contender", way, path, strconv.Itoa(i))
		}
		for _, c := range children {
			c.line() // waits until the child is ready
		}
		for _, c := range children {
			c.say("go")
		}
		for _, c := range children {
			var s served
			check(json.Unmarshal([]byte(c.line()), &s))
			all = append(all, s)
		}
	}))
	return all
}

// asContender is the main function of a contending process.
func asContender(b *bench, p *parent, args []string) {
	way, path, req := args[0], args[1], request("asked", get(strconv.Atoi(args[2])))
	var acts []func() // each act is timed alone
	if way == ourWay {
		m := b.manager(b.openSQLite(path), lock.Options{})
		var g *lock.Grant
		acts = append(acts,
			func() { g = get(m.TryAcquire(b.ctx, req)) },
			func() { check(g.Release(b.ctx)) })
	} else {
		acts = append(acts, openMinimalSQLite(b, path, args[2], req).acquireAndRelease)
	}
	p.say("ready")
	get(p.line()) // the parent starts all processes at once
	var s served
	for began := time.Now(); time.Since(began) < contendFor; s.Times++ {
		for _, act := range acts {
			from := time.Now()
			act()
			s.Longest = max(s.Longest, time.Since(from))
		}
	}
	p.sayJSON(s)
}
