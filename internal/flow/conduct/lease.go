package conduct

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// conductorLock returns the lock of the process that conducts the flows of the space.
func conductorLock() []lockkeeper.Lock {
	return []lockkeeper.Lock{{Target: lockkeeper.Target{Path: project.DirName + "/conductor", Kind: lockkeeper.File}, Mode: lockkeeper.Write}}
}

// Lease acquires the conductor's lock for a holder. If another process holds it, Lease returns a
// *lockkeeper.BlockedError.
func Lease(ctx context.Context, a *project.Project, holder string) (*lock.Grant, error) {
	self, err := process.Self() // if this process dies, the lease ends at once
	if err != nil {
		return nil, err
	}
	g, err := a.Locks.TryAcquire(ctx, lockkeeper.Request{Holder: holder, Locks: conductorLock(), Process: &self})
	if err != nil {
		return nil, err
	}
	g.Keep()
	return g, nil
}

// Holder returns the holder of the conductor's lock, or "" if no process conducts.
func Holder(ctx context.Context, a *project.Project) (string, error) {
	found, err := a.Locks.CheckConflicts(ctx, conductorLock())
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].Holder, nil
}

// LeaseRecord returns the record of the conductor's lock. It returns nil if the lock is free or
// has expired, or its process is known to be dead.
func LeaseRecord(a *project.Project, r store.Reader) (*store.Record, error) {
	found, _, err := r.Overlapping(store.Query{Locks: conductorLock(), Before: store.HeldOnly})
	for _, o := range found {
		rec := o.Record
		over := rec.Expires != 0 && rec.Expires <= r.Now().Lease
		if !over && (rec.Process == nil || a.Host.Liveness(*rec.Process) != lockkeeper.ProcessDead) {
			return rec, err
		}
	}
	return nil, err
}
