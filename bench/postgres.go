package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

func postgresMinimal(ctx context.Context, b *bench) (_ []row, err error) {
	url, drop, err := b.database(ctx, "minimal", "one")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	m, closeAll, err := openPostgres(ctx, url, "one")
	if err != nil {
		return nil, err
	}
	defer closeAll()
	row1, err := makeMinimal(ctx, url, "one", request("asked", 1))
	if err != nil {
		return nil, err
	}
	peer, err := openMinimalPostgres(ctx, url, row1, 1, 1)
	if err != nil {
		return nil, err
	}
	defer peer.conn.Close(context.WithoutCancel(ctx))
	t, err := b.race(diskSlice, takeAndGive(ctx, m, request("asked", 1)), peer.side(ctx))
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "PostgreSQL: one client, speed relative to the minimal transaction", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "Acquire and release of ten paths against two hand-written functions on copies of the same tables, which insert and delete the same rows in one round trip each and check nothing.",
	}.atLeast(median(ratios(t[1], t[0])), 0.7, "%.2f")}, nil
}

func postgresGrowth(ctx context.Context, b *bench) (_ []row, err error) {
	url, drop, err := b.database(ctx, "growth", "empty", "full")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	few, closeFew, err := openPostgres(ctx, url, "empty")
	if err != nil {
		return nil, err
	}
	defer closeFew()
	many, closeMany, err := openPostgres(ctx, url, "full")
	if err != nil {
		return nil, err
	}
	defer closeMany()
	// Sessions plan their statements on the empty table, as those of a process
	// that runs for long did.
	small, full := takeAndGive(ctx, few, spread()...), takeAndGive(ctx, many, spread()...)
	if err := errors.Join(small(20), full(20), hold(ctx, many, 10_000)); err != nil {
		return nil, err
	}
	t, err := b.race(diskSlice, full, small)
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "PostgreSQL: 100,000 held paths to none", Ours: ns(median(t[0])), Peer: ns(median(t[1])) + " (ours, none)",
		How: "The same acquire and release, over 256 requests in turn, in a space with 10,000 active grants of ten paths and in an empty one of the same database.",
	}.atMost(100*(median(ratios(t[0], t[1]))-1), 25, "%+.1f %%")}, nil
}

func (p *minimalPostgres) side(ctx context.Context) side {
	return func(n int) error {
		for range n {
			if err := p.takeAndGive(ctx, time.Now().UnixNano()); err != nil {
				return err
			}
		}
		return nil
	}
}

// clients is how many work at once.
const clients = 16

// crowd is several clients as one side: a piece of work is one of each.
func crowd(each []side) side {
	return func(n int) error {
		var wg sync.WaitGroup
		errs := make([]error, len(each))
		for i, do := range each {
			wg.Go(func() { errs[i] = do(n) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
}

func perSecond(ns float64) string { return fmt.Sprintf("%.0f/s", clients*1e9/ns) }

// ourClients opens 16 clients, in the spaces in turn.
func ourClients(ctx context.Context, url string, spaces []string) (_ []side, closeAll func() error, err error) {
	var sides []side
	var closers []func() error
	closeAll = func() (err error) {
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return err
	}
	for i := range clients {
		m, closeOne, err := openPostgres(ctx, url, spaces[i%len(spaces)])
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		closers = append(closers, closeOne)
		sides = append(sides, takeAndGive(ctx, m, request("asked", i)))
	}
	return sides, closeAll, nil
}

func postgresSpaces(ctx context.Context, b *bench) (_ []row, err error) {
	var spaces []string
	for i := range clients {
		spaces = append(spaces, fmt.Sprintf("space-%d", i))
	}
	url, drop, err := b.database(ctx, "spaces", spaces...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	ours, closeOurs, err := ourClients(ctx, url, spaces)
	if err != nil {
		return nil, err
	}
	defer closeOurs()
	theirs, closeTheirs, err := etcdClients(ctx, b)
	if err != nil {
		return nil, err
	}
	defer closeTheirs()
	t, err := b.race(4*diskSlice, crowd(ours), crowd(theirs))
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "PostgreSQL: 16 clients in 16 spaces, throughput relative to etcd", Ours: perSecond(median(t[0])), Peer: perSecond(median(t[1])),
		How: "Acquires with release of ten paths each second, against etcd in a process of its own, fsync on: one transaction that puts ten keys if none of them exists, one that deletes them. Our release does not wait for the disk, which etcd cannot leave out.",
	}.atLeast(median(ratios(t[1], t[0])), 1, "%.3f×")}, nil
}

func postgresOneSpace(ctx context.Context, b *bench) (_ []row, err error) {
	url, drop, err := b.database(ctx, "space", "one")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	ours, closeOurs, err := ourClients(ctx, url, []string{"one"})
	if err != nil {
		return nil, err
	}
	defer closeOurs()
	row1, err := makeMinimal(ctx, url, "one", request("asked", 1))
	if err != nil {
		return nil, err
	}
	var theirs []side
	for i := range clients {
		peer, err := openMinimalPostgres(ctx, url, row1, i, 1)
		if err != nil {
			return nil, err
		}
		defer peer.conn.Close(context.WithoutCancel(ctx))
		theirs = append(theirs, peer.side(ctx))
	}
	t, err := b.race(4*diskSlice, crowd(ours), crowd(theirs))
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "PostgreSQL: 16 clients in one space, throughput relative to the minimal transaction", Ours: perSecond(median(t[0])), Peer: perSecond(median(t[1])),
		How: "Acquires with release of ten paths each second, against 16 clients of the hand-written functions, which lock the same row of the space.",
	}.atLeast(median(ratios(t[1], t[0])), 0.8, "%.2f")}, nil
}
