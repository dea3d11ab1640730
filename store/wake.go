package store

import (
	"strings"

	"lockkeeper"
)

// A waiting item waits on one key: a path that another holder has locked, a pool
// without a free slot, another item, or a reservation in the wait list of the engine.
// Whatever frees the key wakes the first item that waits on it. If that item does not
// take what was freed, it wakes the next one. Items of different roots wait on different
// keys for the same path or pool (InRoot), because a worker examines only the items of its
// roots: an item of a root without a worker must not keep those of other roots waiting.

// OnPath returns the key of a locked path for items that ask for it in a mode. Readers
// and writers wait on different keys, so a lock that blocks the first item on a key blocks
// all of them.
func OnPath(asked lockkeeper.Mode, path string) string { return keysAt(path) + asked.String() }

// OnLock returns the key of a locked target. A lock on a Node covers nothing below it, so
// the items that it blocks wait on a separate key.
func OnLock(asked lockkeeper.Mode, held lockkeeper.Target) string {
	if !held.Kind.Below() {
		return keysAt(held.Path) + "node/" + asked.String()
	}
	return OnPath(asked, held.Path)
}

// keysAt returns the prefix of the keys of a path, and of no other: no path contains
// two slashes in a row.
func keysAt(path string) string { return OnAnyPath + path + "//" }

// OnAnyPath is the prefix of the keys of all paths.
const OnAnyPath = "path:"

// InRoot returns the key for the items of a root, for the key of a path or a pool.
func InRoot(key, root string) string {
	if root == "" {
		return key
	}
	return key + rootMark + root
}

// rootMark precedes the root in a key. It occurs in no mode.
const rootMark = "@"

// KeepsWaiting reports whether a lock, while it is held, blocks the items on a key.
func KeepsWaiting(l lockkeeper.Lock, key string) bool {
	for asked := lockkeeper.Read; asked <= lockkeeper.Write; asked++ {
		if own := OnLock(asked, l.Target); lockkeeper.Conflicts(l.Mode, asked) && (own == key || strings.HasPrefix(key, own+rootMark)) {
			return true
		}
	}
	return false
}

// WakeWaiters wakes the first item on every key that a lock has blocked.
func WakeWaiters(tx Tx, held lockkeeper.Lock) error {
	keys, err := tx.WaitKeys(keysAt(held.Path)) // there are usually no such keys
	if err != nil {
		return err
	}
	for _, key := range keys {
		if !KeepsWaiting(held, key) {
			continue
		}
		if _, err := WakeFirst(tx, key); err != nil {
			return err
		}
	}
	return nil
}

// OnPool returns the key of a pool without a free slot.
func OnPool(pool string) string { return "pool:" + pool }

// PoolOf returns the pool on which an item with a key waits, and whether it is the key of a pool.
func PoolOf(it *lockkeeper.Item, key string) (string, bool) {
	pool, ok := strings.CutPrefix(key, OnPool(""))
	return strings.TrimSuffix(pool, InRoot("", it.Root)), ok
}

// PathOf returns the path on which an item with a key waits, and whether it is the key of a path.
func PathOf(key string) (string, bool) {
	path, ok := strings.CutPrefix(key, OnAnyPath)
	path, _, _ = strings.Cut(path, "//")
	return path, ok
}

// WakePool wakes the first item of each root that waits on a pool.
func WakePool(tx Tx, pool string) error {
	keys, err := tx.WaitKeys(OnPool(pool) + rootMark) // one for each root
	if err != nil {
		return err
	}
	for _, key := range append(keys, OnPool(pool)) {
		if _, err := WakeFirst(tx, key); err != nil {
			return err
		}
	}
	return nil
}

// OnItem returns the key of an item that is not completed.
func OnItem(id string) string { return "item:" + id }

// OnGrant returns the key of a reservation in the wait list of the lock engine.
func OnGrant(id string) string { return "grant:" + id }

// IsOnLock reports whether a key is about locks.
func IsOnLock(key string) bool { return len(key) > 5 && (key[:5] == "path:" || key[:6] == "grant:") }

// QueueWakeID is the id on which idle workers listen.
const QueueWakeID = "queue"

// ItemWakeID returns the id on which the process that runs an item listens.
func ItemWakeID(id string) string { return "item-" + id }

// WakeFirst makes the first item that waits on a key ready, and reports whether there
// was one.
func WakeFirst(tx Tx, key string) (bool, error) {
	it, err := tx.FirstWaiting(key)
	if err != nil || it == nil {
		return false, err
	}
	return true, WakeItem(tx, it.Clone())
}

// WakeItem makes a waiting item ready. It wakes the process that runs the item if there
// is one, and otherwise the idle workers.
func WakeItem(tx Tx, it *lockkeeper.Item) error {
	left, led := it.WaitsOn, it.FirstSince
	if IsOnLock(left) {
		it.StopFirst(tx.Now().Lease)
	}
	it.Enter(lockkeeper.StageReady)
	if it.WokenBy = left; !IsOnLock(left) {
		it.FirstSince = led // the item still waits for a slot
	}
	if it.HasReserved() {
		it.CheckAt = tx.Now().Lease // the next tick must renew the item's reservation
	}
	if it.IsHolding() {
		tx.Wake(ItemWakeID(it.ID))
	} else {
		tx.Wake(QueueWakeID)
	}
	if err := tx.SaveItem(it); err != nil || led == 0 {
		return err
	}
	return StartFirst(tx, left)
}

// StartFirst starts to count the waiting time of the first item on the key of a lock. The
// items behind it do not count theirs. It sets CheckAt to now, so that the next tick computes
// the right time. It does nothing for other keys: package sched counts the wait for a slot.
func StartFirst(tx Tx, key string) error {
	if !IsOnLock(key) {
		return nil
	}
	it, err := tx.FirstWaiting(key)
	if err != nil || it == nil || it.FirstSince != 0 {
		return err
	}
	next := it.Clone()
	next.FirstSince, next.CheckAt = tx.Now().Lease, tx.Now().Lease
	return tx.SaveItem(next)
}
