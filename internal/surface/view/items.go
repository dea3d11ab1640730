package view

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/store"
)

// Items is a page of the queue.
type Items struct {
	Moment
	Items []ListedItem `json:"items"`          // the newest first
	Next  uint64       `json:"next,omitempty"` // After of the next page; 0: this page is the last
	Queue QueueCount   `json:"queue"`
}

type QueueCount struct {
	Ready     int `json:"ready"`
	Blocked   int `json:"blocked"`
	Running   int `json:"running"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Canceled  int `json:"canceled"`
}

// ListedItem is an item with its state and name.
type ListedItem struct {
	*lockkeeper.Item
	State string // ready, blocked, escalated, running, preparing, collecting, between phases, completed, failed or canceled
	Name  string
}

// ShownListedItem is the JSON of a listed item.
type ShownListedItem struct {
	lockkeeper.ShownItem
	State string `json:"state"`
	Name  string `json:"name"`
}

// Shown returns what JSON shows of the item.
func (it ListedItem) Shown() ShownListedItem {
	return ShownListedItem{it.Item.Shown(), it.State, it.Name}
}

// MarshalJSON implements json.Marshaler.
func (it ListedItem) MarshalJSON() ([]byte, error) { return json.Marshal(it.Shown()) }

// ItemsQuery selects a page of items.
type ItemsQuery struct {
	Status lockkeeper.ItemStatus // empty: any
	After  uint64                // Next of the previous page
	Limit  int                   // default 100
}

// pageOf is the default number of entries of a page.
const pageOf = 100

const pageMost = 1_000

func pageLimit(asked int) int {
	if asked <= 0 {
		return pageOf
	}
	return min(asked, pageMost)
}

// Items lists the items of the queue, the newest first.
func (rd *Reader) Items(ctx context.Context, q ItemsQuery) (v *Items, err error) {
	v = &Items{Items: []ListedItem{}}
	limit := pageLimit(q.Limit)
	v.Moment, err = rd.at(ctx, func(r store.Reader) error {
		census, err := r.Census()
		if err != nil {
			return err
		}
		v.Queue = QueueCount{Ready: census.Ready, Blocked: census.Waiting, Running: census.Running, Completed: census.Completed}
		if v.Queue.Failed, v.Queue.Canceled, err = failedItems(r, census); err != nil {
			return err
		}
		list, err := r.Items(store.ItemQuery{After: q.After, Status: q.Status, Limit: limit + 1, Latest: true})
		if err != nil {
			return err
		}
		v.Items, v.Next = v.Items[:0], 0
		if len(list) > limit {
			list, v.Next = list[:limit], list[limit-1].Seq
		}
		for _, it := range list {
			v.Items = append(v.Items, ListedItem{Item: it, State: ItemState(it), Name: ItemName(it)})
		}
		return nil
	})
	return v, err
}

// failedItems counts the items that failed, and those that were canceled.
func failedItems(r store.Reader, census store.Census) (failed, canceled int, err error) {
	if census.Failed == 0 {
		return 0, 0, nil
	}
	err = job.EachItem(r, lockkeeper.ItemError, func(it *lockkeeper.Item) bool {
		if it.IsCanceled() {
			canceled++
		}
		return true
	})
	return census.Failed - canceled, canceled, err
}

// FirstItem is an item with its state in a few words.
type FirstItem struct {
	*lockkeeper.Item
	State string // as of ItemSituation, but error for a failed item
}

// MarshalJSON implements json.Marshaler.
func (it FirstItem) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		lockkeeper.ShownItem
		State string `json:"state"`
	}{it.Shown(), it.State})
}

// firstRead is how many items of a status FirstItems considers at least.
const firstRead = 1_000

// FirstItems lists up to limit items of each status, in the order of the statuses, and reports
// whether there are more. Queued items are in the order of their starts, ended ones are sorted
// latest first. Limit 0 lists all. If there are very many items, it considers only the oldest
// queued and the newest ended ones.
func (rd *Reader) FirstItems(ctx context.Context, limit int, statuses ...lockkeeper.ItemStatus) (list []FirstItem, more bool, err error) {
	_, err = rd.at(ctx, func(r store.Reader) error {
		list, more = []FirstItem{}, false
		for _, status := range statuses {
			some, err := firstItems(r, status, limit)
			if err != nil {
				return err
			}
			if limit > 0 && len(some) > limit {
				some, more = some[:limit], true
			}
			for _, it := range some {
				state := ItemSituation(it)
				if it.Status == lockkeeper.ItemError {
					state = string(it.Status)
				}
				list = append(list, FirstItem{it, state})
			}
		}
		return nil
	})
	return list, more, err
}

func firstItems(r store.Reader, status lockkeeper.ItemStatus, limit int) (list []*lockkeeper.Item, err error) {
	considered := max(limit+1, firstRead)
	if status == lockkeeper.ItemQueued && limit > 0 {
		list, err = r.Items(store.ItemQuery{Status: status, Limit: considered})
		list = slices.Clone(list)
	} else {
		err = job.EachItem(r, status, func(it *lockkeeper.Item) bool {
			list = append(list, it)
			return limit == 0 || len(list) != considered
		})
	}
	slices.SortStableFunc(list, func(a, b *lockkeeper.Item) int {
		if status == lockkeeper.ItemQueued || status == lockkeeper.ItemDispatched {
			return cmp.Or(cmp.Compare(a.Stage, b.Stage), lockkeeper.CompareItems(a, b))
		}
		return b.CompletedAt.Compare(a.CompletedAt)
	})
	return list, err
}
