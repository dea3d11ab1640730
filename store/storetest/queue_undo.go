package storetest

import (
	"errors"
	"fmt"

	"lockkeeper"
	"lockkeeper/store"
)

// queueTurmoil makes every kind of change to the queue.
func queueTurmoil(tx store.Tx) error {
	known, err := tx.Item("known")
	if err != nil {
		return err
	}
	next := known.Clone()
	next.Stage, next.WaitsOn, next.CheckAt, next.Note = lockkeeper.StageReady, "", 0, "changed"
	if err := tx.SaveItem(next); err != nil {
		return err
	}
	again := next.Clone()
	again.Stage, again.Status, again.CheckAt, again.Pools = lockkeeper.StageRunning, lockkeeper.ItemDispatched, 9, []string{"p"}
	if _, err := queued(tx, lockkeeper.Item{ID: "new", Key: "new", Stage: lockkeeper.StageWaiting, WaitsOn: store.OnPool("p")}); err != nil {
		return err
	}
	return errors.Join(tx.SaveItem(again), tx.TakeSlots("p", 3), tx.TakeSlots("new", 1), tx.SetTurn("q", 1, 9), tx.SetTurn("new", 1, 1),
		tx.DeleteWorker("w"), tx.PutWorker(lockkeeper.Worker{ID: "new"}))
}

// dumpQueue returns all visible state that queueTurmoil changes.
func dumpQueue(tx store.Tx) (out string, err error) {
	items, err := tx.Items(store.ItemQuery{Limit: 100})
	if err != nil {
		return "", err
	}
	for _, it := range items {
		out += fmt.Sprintf("%+v\n", *plain(it))
	}
	for _, name := range []string{"known", "new"} {
		it, err := tx.ItemWithKey(name)
		if err != nil {
			return "", err
		}
		out += fmt.Sprintf("key %s: %v\n", name, it != nil)
	}
	for _, status := range []lockkeeper.ItemStatus{lockkeeper.ItemQueued, lockkeeper.ItemDispatched} {
		items, err := tx.Items(store.ItemQuery{Status: status, Limit: 100})
		if err != nil {
			return "", err
		}
		out += fmt.Sprintf("%s: %v\n", status, numbers(items))
	}
	ready, err1 := tx.FirstReady("")
	keys, err2 := tx.WaitKeys("")
	due, err3 := tx.NextCheck()
	census, err4 := tx.Census()
	taken, err5 := tx.SlotsTaken("p")
	more, err6 := tx.SlotsTaken("new")
	turn, err7 := tx.Turn("q", 1)
	workers, err8 := tx.Workers()
	out += fmt.Sprintf("ready %v, keys %q, due %d, %+v, taken %d and %d, turn %d, workers %+v, on locks %v\n",
		ready != nil, keys, due, census, taken, more, turn, workers, tx.AnyWaitsOnLock())
	return out, errors.Join(err1, err2, err3, err4, err5, err6, err7, err8)
}
