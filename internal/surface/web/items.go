package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/surface/view"
)

type itemsData struct {
	*view.Items
	Status            string
	Unit, Phase, Text string
	Phases            []string
	Choices           []choice
	Filtered          bool   // the page shows only some items
	Older             string // URL of the next page
	Newest            string // URL of the first page; empty: this page is the first
}

func (d *Dashboard) itemsPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	after, err := pageNumber(q.Get("after"))
	if err != nil {
		return nil, err
	}
	data := itemsData{Status: q.Get("status"), Unit: strings.TrimSpace(q.Get("unit")), Phase: q.Get("phase"), Text: strings.TrimSpace(q.Get("q")), Phases: phaseNames()}
	data.Filtered = data.Status+data.Unit+data.Phase+data.Text != ""
	ask := view.ItemsQuery{Status: lockkeeper.ItemStatus(data.Status), Unit: data.Unit, Phase: data.Phase, Text: data.Text, After: after}
	if data.Items, err = d.view.Items(r.Context(), ask); err != nil {
		return nil, err
	}
	if after > 0 {
		data.Newest = changedAddress(r, "after", "")
	}
	if data.Next > 0 {
		data.Older = changedAddress(r, "after", strconv.FormatUint(data.Next, 10))
	}
	c := data.Queue
	for _, of := range []struct {
		status, word string
		count        int
	}{{"", "all", c.Running + c.Ready + c.Blocked + c.Failed + c.Canceled + c.Completed}, {"dispatched", "running", c.Running}, {"queued", "queued", c.Ready + c.Blocked},
		{"error", "failed or canceled", c.Failed + c.Canceled}, {"completed", "completed", c.Completed}} {
		data.Choices = append(data.Choices, choice{Name: of.word, Count: of.count, URL: changedAddress(r, "status", of.status, "after"), Here: of.status == data.Status})
	}
	return data, nil
}

// phaseNames returns the phases of all flows, in order, and that of jobs.
func phaseNames() (names []string) {
	for _, f := range flow.All() {
		for _, p := range f.Phases {
			if p.Executor != flow.Human && !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return append(names, "job")
}
