package lock

import (
	"context"
	"fmt"
	"slices"

	"lockkeeper"
	"lockkeeper/store"
)

// Upgrade turns upgradeable locks of a live grant into write locks, all of the named paths
// or none, without releasing them in between. It never waits. If other holders of these
// paths block it, the grant stays as it was.
func (m *Manager) Upgrade(ctx context.Context, id, token string, paths ...string) (lockkeeper.Grant, error) {
	return m.grow(ctx, id, token, lockkeeper.EventUpgraded, lockkeeper.EventUpgradeDenied,
		func(policy lockkeeper.Policy, rec *store.Record) (asked, whole []lockkeeper.Lock, err error) {
			if !policy.Upgrade {
				return nil, nil, &lockkeeper.RefusedError{Act: "upgrade", Reason: fmt.Sprintf("policy %q does not allow changes to the locks of a grant", policy.Name),
					Next: "release, and acquire with write"}
			}
			whole = slices.Clone(rec.Locks)
			for _, path := range paths {
				i, ok := lockkeeper.Find(whole, path)
				switch {
				case !ok || whole[i].Mode == lockkeeper.Read:
					return nil, nil, &lockkeeper.RefusedError{Act: "upgrade " + path, Reason: "the grant does not hold it as upgradeable",
						Next: "acquire it as upgradeable"}
				case whole[i].Mode == lockkeeper.Upgradeable:
					whole[i].Mode = lockkeeper.Write
					asked = append(asked, whole[i])
				}
			}
			return asked, whole, nil
		})
}

// Extend adds locks to a live grant, all of them or none, if its policy allows it. It never
// waits.
func (m *Manager) Extend(ctx context.Context, id, token string, locks ...lockkeeper.Lock) (lockkeeper.Grant, error) {
	return m.grow(ctx, id, token, lockkeeper.EventExtended, lockkeeper.EventExtendDenied,
		func(policy lockkeeper.Policy, rec *store.Record) (asked, whole []lockkeeper.Lock, err error) {
			if policy.Extend == lockkeeper.ExtendNever {
				return nil, nil, &lockkeeper.RefusedError{Act: "extend", Reason: fmt.Sprintf("policy %q does not allow changes to the locks of a grant", policy.Name),
					Next: "record the missing path as a gap and declare it next time"}
			}
			if err := lockkeeper.CheckCount(len(rec.Locks) + len(locks)); err != nil {
				return nil, nil, err
			}
			locks := lockkeeper.Normalize(slices.Clone(locks))
			// The files of resources are locked together with them. Only resources have an order, not
			// their files.
			named := slices.ContainsFunc(locks, func(l lockkeeper.Lock) bool { return l.Level() > 0 })
			if err := checkLocks(rec.Holder, policy, locks); err != nil {
				return nil, nil, err
			}
			for _, l := range locks {
				if i, ok := lockkeeper.Find(rec.Locks, l.Path); ok {
					if rec.Locks[i].Mode >= l.Mode && (rec.Locks[i].Kind == l.Kind || rec.Locks[i].Kind.Below()) {
						continue // the grant holds the lock already
					}
					return nil, nil, &lockkeeper.RefusedError{Act: "extend " + l.Path, Reason: fmt.Sprintf("it is held already, as %s", rec.Locks[i].Mode), Next: "upgrade it"}
				}
				if policy.Extend == lockkeeper.ExtendInOrder && (l.Level() > 0 || !named) {
					if err := afterAll(rec.Locks, l); err != nil {
						return nil, nil, err
					}
				}
				asked = append(asked, l)
			}
			return asked, lockkeeper.Normalize(slices.Concat(rec.Locks, asked)), nil
		})
}

// grow replaces the locks of a live grant with the set whole that plan returns, if no other
// live grant conflicts with the asked locks. An extension must not overtake requests that
// waited before the grant was requested, or growing grants would starve them. Later waiters
// do not count: they may be waiting for this grant.
func (m *Manager) grow(ctx context.Context, id, token string, done, denied lockkeeper.EventKind,
	plan func(lockkeeper.Policy, *store.Record) (asked, whole []lockkeeper.Lock, err error)) (lockkeeper.Grant, error) {
	var blocked error
	g, err := m.change(ctx, id, token, func(tx *Tx, rec *store.Record) error {
		asked, whole, err := plan(m.policyOf(rec.Policy), rec)
		if err != nil || len(asked) == 0 {
			return err
		}
		before := store.HeldOnly
		if done == lockkeeper.EventExtended {
			before = rec.Ticket
		}
		found, more, err := tx.blockers(store.Query{Locks: asked, Before: before, Except: rec.Ticket})
		if err != nil {
			return err
		}
		ev := about(done, rec)
		ev.Locks = asked
		if len(found) > 0 {
			ev.Kind, ev.Conflicts = denied, Conflicts(found)
			blocked = &lockkeeper.BlockedError{Holder: rec.Holder, Conflicts: ev.Conflicts, Truncated: more}
			return tx.note(ev)
		}
		if err := tx.note(ev); err != nil {
			return err
		}
		if err := tx.SetLocks(rec, whole); err != nil {
			return err
		}
		rec.Locks = whole
		return nil
	})
	if err == nil {
		err = blocked
	}
	return g, err
}

// afterAll refuses a lock that comes before a held one in the global order. Holders that all
// grow in this order cannot deadlock.
func afterAll(held []lockkeeper.Lock, l lockkeeper.Lock) error {
	for _, h := range held {
		if l.Target.Compare(h.Target) < 0 {
			return &lockkeeper.RefusedError{Act: "extend " + l.Path, Reason: fmt.Sprintf("it comes before %s in the global order, which the grant holds already", h.Path),
				Next: "release, and acquire all of them at once"}
		}
	}
	return nil
}
