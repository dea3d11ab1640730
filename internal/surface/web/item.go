package web

import (
	"net/http"
	"strconv"

	"lockkeeper"
	"lockkeeper/internal/surface/view"
)

// itemData is the data of the page of an item.
type itemData struct {
	*view.Item
	Live bool // the item is running, so its log grows
}

func (i itemData) heading() string { return i.Why.Item.Workflow }

func (d *Dashboard) itemPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	it, err := d.view.Item(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return itemData{Item: it, Live: it.Why.Item.Status == lockkeeper.ItemDispatched}, nil
}

// itemsData is the data of the page of all items.
type itemsData struct {
	*view.Items
	Status string
	Paged  bool // this is not the first page
}

func (d *Dashboard) itemsPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	after, err := pageNumber(q.Get("after"))
	if err != nil {
		return nil, err
	}
	items, err := d.view.Items(r.Context(), view.ItemsQuery{Status: lockkeeper.ItemStatus(q.Get("status")), After: after})
	return itemsData{Items: items, Status: q.Get("status"), Paged: after > 0}, err
}

// pageNumber parses where a page of a list begins. Empty means at the start.
func pageNumber(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, &lockkeeper.InputError{Field: "page", Value: text, Reason: "not a number", Next: "go to the first page"}
	}
	return n, nil
}
