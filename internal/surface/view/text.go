package view

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/run"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// rounded rounds an amount: a cost to a millionth, the precision of prices, and an estimate to
// a cent.
func rounded(usd, parts float64) float64 { return math.Round(usd*parts) / parts }

func ItemName(it *lockkeeper.Item) string {
	if it.Unit == "" || it.Workflow == "" {
		return it.Workflow + it.Unit
	}
	if _, ofFlow := run.WorkOf(it); ofFlow { // the item's Workflow includes the unit
		return it.Workflow
	}
	return it.Workflow + "/" + it.Unit
}

func blockerOf(l sched.LockWait) Blocker {
	b := Blocker{Name: l.Holder, GrantID: l.GrantID, Path: l.BlockingPath, Waits: l.Kind == lockkeeper.Waiting}
	if l.By != nil {
		b.Name, b.Item = ItemName(l.By), l.By.ID
	}
	return b
}

func blockersOf(e *sched.Explanation) []Blocker {
	list := []Blocker{}
	for _, l := range e.Locks {
		list = append(list, blockerOf(l))
	}
	return list
}

// ItemState returns the state of an item as people read it.
func ItemState(it *lockkeeper.Item) string {
	switch {
	case it.Status == lockkeeper.ItemCompleted:
		return "completed"
	case it.IsCanceled():
		return "canceled"
	case it.Status == lockkeeper.ItemError:
		return "failed"
	case it.IsHolding() && it.Stage == lockkeeper.StageRunning:
		return "running"
	case it.Aside() != "":
		return it.Aside()
	case it.IsHolding():
		return "between phases"
	case it.Escalated:
		return "escalated"
	case it.Stage == lockkeeper.StageReady:
		return "ready"
	}
	return "blocked"
}

// ItemSituation returns the state of an item, and what it waits for.
func ItemSituation(it *lockkeeper.Item) string {
	switch {
	case it.Status == lockkeeper.ItemError, it.Status == lockkeeper.ItemCompleted, it.IsHolding() && it.Stage == lockkeeper.StageRunning, it.Aside() != "":
		return ItemState(it)
	case it.IsHolding():
		return "running, waits for " + waitedFor(it)
	case it.Stage == lockkeeper.StageReady:
		return "ready"
	}
	return "blocked by " + waitedFor(it)
}

// waitedFor describes the lock, the slot, the other item or the turn that an item waits for.
func waitedFor(it *lockkeeper.Item) string {
	if path, ok := store.PathOf(it.WaitsOn); ok {
		return "lock " + path
	}
	if pool, ok := store.PoolOf(it, it.WaitsOn); ok {
		return SlotOf(pool)
	}
	kind, what, _ := strings.Cut(it.WaitsOn, ":")
	switch kind {
	case "item":
		return "item " + what
	case "grant":
		return "locks it has reserved"
	case "":
		return "its turn"
	}
	return it.WaitsOn
}

// SlotOf describes a slot of a pool. The names of pools in the configuration are not those of what runs in them.
func SlotOf(pool string) string {
	switch pool {
	case sched.PoolAgent:
		return "a slot of an agent"
	case sched.PoolTest:
		return "a slot of tests"
	}
	return "a slot of " + pool
}

// ItemTook returns how long the last attempt of an ended item took, or 0 if it never ran.
func ItemTook(it *lockkeeper.Item) time.Duration {
	if it.Attempts == 0 || it.DispatchedAt.IsZero() || it.CompletedAt.Before(it.DispatchedAt) {
		return 0
	}
	return it.CompletedAt.Sub(it.DispatchedAt)
}

type names map[string]string

// of returns the name of an item, or of the item that is the holder, or the holder.
func (n names) of(holder, item string) string {
	return cmp.Or(n[item], n[holder], holder)
}

func (n names) add(items ...*lockkeeper.Item) {
	for _, it := range items {
		if it != nil {
			n[it.ID] = ItemName(it)
		}
	}
}

// look looks up the names of items that are not known yet.
func (n names) look(r store.Reader, ids ...string) error {
	for _, id := range ids {
		if _, known := n[id]; known || !sched.IsItemID(id) {
			continue
		}
		it, err := r.Item(id)
		if err != nil {
			return err
		}
		n[id] = ""
		n.add(it)
	}
	return nil
}

// blockedFor returns how long locks have blocked an item, as counted by the scheduler.
func blockedFor(it *lockkeeper.Item, now lockkeeper.Instant, timeout time.Duration) time.Duration {
	if it.Since == 0 {
		return 0
	}
	return time.Duration(it.Retries)*timeout + now.Until(it.Since)
}

func Bytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefixes := float64(n)/unit, "KMGTPE"
	for value >= unit && len(prefixes) > 1 {
		value, prefixes = value/unit, prefixes[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, prefixes[0])
}
