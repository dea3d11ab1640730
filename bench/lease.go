package main

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"lockkeeper/internal/compat/lease"
)

// A minimalLease is what a developer would write by hand: a lock file that appears
// complete under its name and is then removed. It checks no owner, renews nothing and breaks
// no lock.
type minimalLease struct{ dir string }

func (m minimalLease) acquireAndRelease() {
	temp, path := filepath.Join(m.dir, "tmp"), filepath.Join(m.dir, "peer.lock")
	f := get(os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644))
	_, err := f.WriteString(`{"owner": "bench", "token": "7f0c7a39-0000-4000-8000-000000000001", "pid": 4711, "created_at": "2026-01-03T12:00:00Z", "expires_at": "2026-01-03T12:30:00Z", "last_renewed_at": "2026-01-03T12:00:00Z"}` + "\n")
	check(errors.Join(err, f.Sync(), f.Close(), os.Link(temp, path), os.Remove(temp)))
	check(os.Remove(path))
}

func leaseFile(b *bench) []row {
	ours, peer := filepath.Join(b.dir, "lease-"+rand.Text()), minimalLease{filepath.Join(b.dir, "lease-peer-"+rand.Text())}
	spreadOut(b.dir)
	check(errors.Join(os.Mkdir(ours, 0o755), os.Mkdir(peer.dir, 0o755)))
	opt := lease.Defaults()
	opt.Owner = "bench"
	l := lease.New(filepath.Join(ours, "tidy.lock"), opt)
	t := b.race(diskSlice,
		times(func() {
			check(l.Acquire(b.ctx, 0))
			get(l.Release(b.ctx))
		}),
		times(peer.acquireAndRelease))
	return []row{row{What: "Lease file: acquire and release, to create, fsync, link and unlink", Ours: ns(median(t[0])), Peer: ns(median(t[1])),
		How: "A lease is acquired and released: under its guard, with owner, token and times, recorded, and checked before it is removed. The peer writes and syncs a file of the same size, links it to its name, unlinks both, and checks nothing.",
	}.atMost(median(ratios(t[0], t[1])), 1.5, "%.2f×")}
}
