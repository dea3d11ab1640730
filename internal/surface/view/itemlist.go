package view

import (
	"context"

	"lockkeeper/store"
)

// pageOf is how many entries a page has that nobody asked a number of.
const pageOf = 100

// pageMost is how many it may have at most.
const pageMost = 1_000

func pageLimit(asked int) int {
	if asked <= 0 {
		return pageOf
	}
	return min(asked, pageMost)
}

// Items lists the items of the queue, the newest first.
func (l *Look) Items(ctx context.Context, q ItemsQuery) (v *Items, err error) {
	v = &Items{Items: []ListedItem{}}
	limit := pageLimit(q.Limit)
	v.Moment, err = l.at(ctx, func(r store.Reader) error {
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
			v.Items = append(v.Items, ListedItem{Item: it, State: stateOf(it), Name: itemName(it)})
		}
		return nil
	})
	return v, err
}
