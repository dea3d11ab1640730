package storetest

import (
	"errors"
	"fmt"

	"lockkeeper"
	"lockkeeper/store"
)

// queueTurmoil makes every kind of change to the queue.
func queueTurmoil(tx store.Tx) {
	next := get(tx.Item("known")).Clone()
	next.Stage, next.WaitsOn, next.CheckAt, next.Note = lockkeeper.StageReady, "", 0, "changed"
	check(tx.SaveItem(next))
	again := next.Clone()
	again.Stage, again.Status, again.CheckAt, again.Pools = lockkeeper.StageRunning, lockkeeper.ItemDispatched, 9, []string{"p"}
	queued(tx, lockkeeper.Item{ID: "new", Key: "new", Stage: lockkeeper.StageWaiting, WaitsOn: store.OnPool("p")})
	check(errors.Join(tx.SaveItem(again), tx.TakeSlots("p", 3), tx.TakeSlots("new", 1), tx.SetTurn("q", 1, 9), tx.SetTurn("new", 1, 1),
		tx.DeleteWorker("w"), tx.PutWorker(lockkeeper.Worker{ID: "new"})))
}

// dumpQueue returns all visible state that queueTurmoil changes.
func dumpQueue(tx store.Tx) (out string) {
	for _, it := range get(tx.Items(store.ItemQuery{Limit: 100})) {
		out += fmt.Sprintf("%+v\n", *plain(it))
	}
	for _, name := range []string{"known", "new"} {
		out += fmt.Sprintf("key %s: %v\n", name, get(tx.ItemWithKey(name)) != nil)
	}
	for _, status := range []lockkeeper.ItemStatus{lockkeeper.ItemQueued, lockkeeper.ItemDispatched} {
		out += fmt.Sprintf("%s: %v\n", status, numbers(get(tx.Items(store.ItemQuery{Status: status, Limit: 100}))))
	}
	return out + fmt.Sprintf("ready %v, keys %q, due %d, %+v, taken %d and %d, turn %d, workers %+v, on locks %v\n",
		get(tx.FirstReady("")) != nil, get(tx.WaitKeys("")), get(tx.NextCheck()), get(tx.Census()), get(tx.SlotsTaken("p")), get(tx.SlotsTaken("new")),
		get(tx.Turn("q", 1)), get(tx.Workers()), tx.AnyWaitsOnLock())
}
