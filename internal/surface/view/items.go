package view

import (
	"context"

	"lockkeeper"
	"lockkeeper/store"
)

// Items is a page of the queue.
type Items struct {
	Moment
	Items []ListedItem `json:"items"`          // the newest first
	Next  uint64       `json:"next,omitempty"` // After of the next page; 0: this is the last one
	Queue QueueCount   `json:"queue"`
}

// QueueCount counts the items of the queue.
type QueueCount struct {
	Ready     int `json:"ready"`
	Blocked   int `json:"blocked"`
	Running   int `json:"running"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

// ListedItem is an item with its state and name.
type ListedItem struct {
	*lockkeeper.Item
	State string `json:"state"` // ready, blocked, escalated, running, between phases, completed or failed
	Name  string `json:"name"`
}

// ItemsQuery selects a page of items.
type ItemsQuery struct {
	Status lockkeeper.ItemStatus // empty: any
	After  uint64                // Next of the previous page
	Limit  int                   // 0: 100
}

// pageOf is the default number of entries of a page.
const pageOf = 100

// pageMost is the maximum.
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
		v.Queue = QueueCount{Ready: census.Ready, Blocked: census.Waiting, Running: census.Running, Completed: census.Completed, Failed: census.Failed}
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
