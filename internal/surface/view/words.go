package view

import (
	"fmt"
	"math"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/run"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// micros is a sum of money to the millionth, in which calls are priced.
func micros(usd float64) float64 { return math.Round(usd*1e6) / 1e6 }

// cents is an estimate, which is not known any better.
func cents(usd float64) float64 { return math.Round(usd*1e2) / 1e2 }

// itemName is what people call an item.
func itemName(it *lockkeeper.Item) string {
	if it.Unit == "" || it.Workflow == "" {
		return it.Workflow + it.Unit
	}
	if _, ofFlow := run.WorkOf(it); ofFlow { // what it is called says so already
		return it.Workflow
	}
	return it.Workflow + "/" + it.Unit
}

// waitsFor is what an item waits for first, in a few words.
func waitsFor(e *sched.Explanation) string {
	switch {
	case len(e.After) > 0:
		return itemName(&e.After[0]) + " (" + e.After[0].ID + "), which comes first and is " + string(e.After[0].Status)
	case len(e.Locks) > 0:
		l := e.Locks[0]
		b := blockerOf(l)
		if b.Waits {
			return l.BlockingPath + ", for which " + b.Name + " waits earlier"
		}
		return l.BlockingPath + ", held by " + b.Name
	case len(e.Slots) > 0:
		return fmt.Sprintf("a slot of %s, of which %d of %d are taken", e.Slots[0].Pool, e.Slots[0].Taken, e.Slots[0].Limit)
	case e.Behind != "":
		return "a copy that is not behind, as on " + e.Behind
	}
	return "its turn"
}

// blockerOf is who is in an item's way with a lock.
func blockerOf(l sched.LockWait) Blocker {
	b := Blocker{Name: l.Holder, GrantID: l.GrantID, Path: l.BlockingPath, Waits: l.Kind == lockkeeper.Waiting}
	if l.By != nil {
		b.Name, b.Item = itemName(l.By), l.By.ID
	}
	return b
}

// blockersOf are those who are in an item's way.
func blockersOf(e *sched.Explanation) []Blocker {
	list := []Blocker{}
	for _, l := range e.Locks {
		list = append(list, blockerOf(l))
	}
	return list
}

// stateOf says where an item has got to.
func stateOf(it *lockkeeper.Item) string {
	switch {
	case it.Status == lockkeeper.ItemCompleted:
		return "completed"
	case it.Status == lockkeeper.ItemError:
		return "failed"
	case it.IsHolding() && it.Stage == lockkeeper.StageRunning:
		return "running"
	case it.IsHolding():
		return "between phases"
	case it.Escalated:
		return "escalated"
	case it.Stage == lockkeeper.StageReady:
		return "ready"
	}
	return "blocked"
}

// ItemOf is the id of the item that an event is about; empty: it is about none.
func ItemOf(ev lockkeeper.Event) string {
	if ev.Kind == lockkeeper.EventQueued {
		return sched.ItemID(ev.Seq)
	}
	return ev.Data[lock.ItemKey]
}

// names are what items are called, by id.
type names map[string]string

// of is what to call whoever holds or asks for something.
func (n names) of(holder, item string) string {
	if name := n[item]; name != "" {
		return name
	}
	if name := n[holder]; name != "" {
		return name
	}
	return holder
}

// add remembers items.
func (n names) add(items ...*lockkeeper.Item) {
	for _, it := range items {
		if it != nil {
			n[it.ID] = itemName(it)
		}
	}
}

// look finds out what items are called that are not known yet.
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

// blockedFor is how long an item has been blocked by locks, as far as that is counted.
func blockedFor(it *lockkeeper.Item, now lockkeeper.Instant, timeout time.Duration) time.Duration {
	if it.Since == 0 {
		return 0
	}
	return time.Duration(it.Retries)*timeout + now.Until(it.Since)
}
