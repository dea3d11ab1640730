package main

import (
	"slices"
	"time"
)

// manyClients is the number of clients of a large team, which work on one codebase at once.
const manyClients = 64

// A watch measures each piece of work of one side.
type watch struct{ took []time.Duration }

func (w *watch) side(do side) side {
	return times(func() {
		began := monotonic()
		do(1)
		w.took = append(w.took, time.Duration(monotonic()-began))
	})
}

// watched returns the clients as one side, and their watches.
func watched(each []side) (side, []*watch) {
	watches := make([]*watch, len(each))
	for i, do := range each {
		watches[i] = &watch{}
		each[i] = watches[i].side(do)
	}
	return crowd(each), watches
}

// p99 returns the time within which 99 of 100 pieces of work of all clients were done.
func p99(watches []*watch) time.Duration {
	var all []time.Duration
	for _, w := range watches {
		all = append(all, w.took...)
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

func postgresMany(b *bench) []row {
	url := b.database("many", "one")
	ours, ourTimes := watched(ourClients(b, manyClients, url, []string{"one"}))
	theirs, theirTimes := watched(etcdClients(b, manyClients))
	t := b.race(4*diskSlice, ours, theirs)
	our, their := p99(ourTimes), p99(theirTimes)
	const same = "64 clients acquire and release ten paths each in one space. The peer is etcd, as with 16 clients."
	return []row{
		row{What: "PostgreSQL: 64 clients in one space, throughput relative to etcd", Ours: perSecond(manyClients, median(t[0])), Peer: perSecond(manyClients, median(t[1])),
			How: same + " Our clients take turns at the row of their space, and those of etcd at nothing but its log."}.atLeast(median(ratios(t[1], t[0])), 0.5, "%.3f×"),
		row{What: "PostgreSQL: 64 clients in one space, 99th percentile relative to etcd", Ours: ns(float64(our)), Peer: ns(float64(their)),
			How: same + " The figure is the time within which 99 of 100 pairs of acquire and release were done, over all slices."}.atMost(float64(our)/float64(their), 4, "%.2f×"),
	}
}
