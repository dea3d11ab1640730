package sched

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// itemPrefix precedes the number in the id of an item.
const itemPrefix = "j"

func itemID(n uint64) string { return fmt.Sprint(itemPrefix, n) }

// ItemID returns the item of an event, or "" if it has none. Earlier versions did not store it in the event that an
// item was queued, and took the number of this event.
func ItemID(ev lockkeeper.Event) string {
	if id := ev.Data[lock.ItemKey]; id != "" || ev.Kind != lockkeeper.EventQueued {
		return id
	}
	return itemID(ev.Seq)
}

// IsItemID reports whether a name has the form of an item's id.
func IsItemID(name string) bool {
	digits, ok := strings.CutPrefix(name, itemPrefix)
	_, err := strconv.ParseUint(digits, 10, 64)
	return ok && err == nil
}

// lastNumber returns the number in the id of the newest item; 0: there is none. The stores keep the newest item.
func lastNumber(r store.Reader) (uint64, error) {
	newest, err := r.Items(store.ItemQuery{Limit: 1, Latest: true})
	if err != nil || len(newest) == 0 {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimPrefix(newest[0].ID, itemPrefix), 10, 64)
}

// resolve returns the ids of items that are named by id or key.
func resolve(r store.Reader, names []string, batch []*lockkeeper.Item) ([]string, error) {
	var ids []string
	for _, name := range names {
		id := ""
		for _, it := range batch {
			if it.Key != "" && it.Key == name {
				id = it.ID
			}
		}
		if id == "" {
			it, err := find(r, name)
			if err != nil {
				return nil, err
			}
			id = it.ID
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// find returns an item by its id or its key.
func find(r store.Reader, name string) (*lockkeeper.Item, error) {
	var it *lockkeeper.Item
	var err error
	if isText(name) { // other names are never stored
		it, err = r.Item(name)
		if err == nil && it == nil {
			it, err = r.ItemWithKey(name)
		}
	}
	if err == nil && it == nil {
		err = &lockkeeper.InputError{Field: "item", Value: name, Reason: "there is no item with this id or key", Next: "lockkeeper job list"}
	}
	return it, err
}
