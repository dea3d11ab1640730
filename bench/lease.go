package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"lockkeeper/internal/compat/lease"
)

// minimalLease is what a developer would write by hand: a file that appears whole under
// its name, or not, and is removed. It knows no owner, renews nothing and breaks
// nothing.
type minimalLease struct{ dir string }

func (m minimalLease) takeAndGive() error {
	temp, path := filepath.Join(m.dir, "tmp"), filepath.Join(m.dir, "peer.lock")
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(`{"owner": "bench", "token": "7f0c7a39-0000-4000-8000-000000000001", "pid": 4711, "created_at": "2026-01-03T12:00:00Z", "expires_at": "2026-01-03T12:30:00Z", "last_renewed_at": "2026-01-03T12:00:00Z"}` + "\n")
	if err := errors.Join(err, f.Sync(), f.Close(), os.Link(temp, path), os.Remove(temp)); err != nil {
		return err
	}
	return os.Remove(path)
}

func leaseFile(ctx context.Context, b *bench) ([]row, error) {
	ours, peer := filepath.Join(b.dir, "lease-"+rand.Text()), minimalLease{filepath.Join(b.dir, "lease-peer-"+rand.Text())}
	if err := errors.Join(spreadOut(b.dir), os.Mkdir(ours, 0o755), os.Mkdir(peer.dir, 0o755)); err != nil {
		return nil, err
	}
	opt := lease.Defaults()
	opt.Owner = "bench"
	l := lease.New(filepath.Join(ours, "tidy.lock"), opt)
	t, err := b.race(diskSlice,
		times(func() error {
			if err := l.Acquire(ctx, 0); err != nil {
				return err
			}
			_, err := l.Release(ctx)
			return err
		}),
		times(peer.takeAndGive))
	if err != nil {
		return nil, err
	}
	return []row{row{What: "Lease file: acquire and release, to create, fsync, link and unlink", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "A lease is acquired and released: under its guard, with owner, token and times, recorded, and checked before it is removed. The peer writes and syncs a file of the same size, links it to its name, unlinks both, and checks nothing.",
	}.atMost(median(ratios(t[0], t[1])), 1.5, "%.2f×")}, nil
}
