package main

import (
	"errors"
	"fmt"
	"sync"
)

func postgresMinimal(b *bench) []row {
	url := b.database("minimal", "one")
	m := b.openPostgres(url, "one")
	row1 := makeMinimal(b, url, "one", request("asked", 1))
	peer := minimalPostgres(b, url, row1, 1)
	t := b.race(diskSlice, b.acquireAndRelease(m, request("asked", 1)), peer)
	return []row{row{
		What: "PostgreSQL: one client, speed relative to the minimal transaction", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "Ten paths are acquired and released. The peer is two hand-written functions on copies of the same tables. They insert and delete the same rows in one round trip each and check nothing.",
	}.atLeast(median(ratios(t[1], t[0])), 0.7, "%.2f")}
}

func postgresGrowth(b *bench) []row {
	url := b.database("growth", "empty", "full")
	few := b.openPostgres(url, "empty")
	many := b.openPostgres(url, "full")
	// Each session plans its statements on the empty table, as in a process that has run for
	// a long time.
	small, full := b.acquireAndRelease(few, spread()...), b.acquireAndRelease(many, spread()...)
	small(20)
	full(20)
	b.hold(many, 10_000)
	t := b.race(diskSlice, full, small)
	return []row{row{
		What: "PostgreSQL: 100,000 held paths to none", Ours: ns(median(t[0])), Peer: ns(median(t[1])) + " (ours, none)",
		How: "256 requests are acquired and released in turn, in a space with 10,000 active grants of ten paths, and in an empty space of the same database.",
	}.atMost(100*(median(ratios(t[0], t[1]))-1), 25, "%+.1f %%")}
}

// clients is the number of clients that work at once.
const clients = 16

// crowd runs several sides at once as one side. One piece of work is one piece of each.
func crowd(each []side) side {
	return func(n int) {
		var wg sync.WaitGroup
		errs := make([]error, len(each))
		for i, do := range each {
			wg.Go(func() { errs[i] = attempt(func() { do(n) }) })
		}
		wg.Wait()
		check(errors.Join(errs...))
	}
}

func perSecond(clients int, ns float64) string {
	return fmt.Sprintf("%.0f/s", float64(clients)*1e9/ns)
}

// ourClients opens clients and assigns the spaces to them in turn.
func ourClients(b *bench, clients int, url string, spaces []string) (sides []side) {
	for i := range clients {
		sides = append(sides, b.acquireAndRelease(b.openPostgres(url, spaces[i%len(spaces)]), request("asked", i)))
	}
	return sides
}

func postgresSpaces(b *bench) []row {
	var spaces []string
	for i := range clients {
		spaces = append(spaces, fmt.Sprintf("space-%d", i))
	}
	url := b.database("spaces", spaces...)
	ours := ourClients(b, clients, url, spaces)
	theirs := etcdClients(b, clients)
	t := b.race(4*diskSlice, crowd(ours), crowd(theirs))
	return []row{row{
		What: "PostgreSQL: 16 clients in 16 spaces, throughput relative to etcd", Ours: perSecond(clients, median(t[0])), Peer: perSecond(clients, median(t[1])),
		How: "The figure is how often ten paths are acquired and released per second. The peer is etcd in a process of its own, with fsync: one transaction puts ten keys if none of them exists, and another deletes them. Our release does not wait for the disk. In etcd every transaction waits for it.",
	}.atLeast(median(ratios(t[1], t[0])), 1, "%.3f×")}
}

func postgresOneSpace(b *bench) []row {
	url := b.database("space", "one")
	ours := ourClients(b, clients, url, []string{"one"})
	row1 := makeMinimal(b, url, "one", request("asked", 1))
	var theirs []side
	for i := range clients {
		theirs = append(theirs, minimalPostgres(b, url, row1, i))
	}
	t := b.race(4*diskSlice, crowd(ours), crowd(theirs))
	return []row{row{
		What: "PostgreSQL: 16 clients in one space, throughput relative to the minimal transaction", Ours: perSecond(clients, median(t[0])), Peer: perSecond(clients, median(t[1])),
		How: "The figure is how often ten paths are acquired and released per second. The peer is 16 clients of the hand-written functions, which lock the same row of the space.",
	}.atLeast(median(ratios(t[1], t[0])), 0.8, "%.2f")}
}
