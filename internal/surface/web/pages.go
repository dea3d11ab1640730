package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

// itemData is the page of an item.
type itemData struct {
	*view.Item
	Live bool // it runs: its log grows
}

func (i itemData) heading() string { return i.Why.Item.Workflow }

func (d *Dashboard) itemPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	it, err := d.view.Item(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return itemData{Item: it, Live: it.Why.Item.Status == lockkeeper.ItemDispatched}, nil
}

// itemsData is the page of all work.
type itemsData struct {
	*view.Items
	Status string
	Paged  bool // it is not the first page
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

// pageNumber reads where a page of a list begins; empty: at its beginning.
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

// runData is the page Run.
type runData struct {
	*view.Run
	Conducts *acts.Running
	Warnings []run.News // of what it conducts, the newest first
}

func (d *Dashboard) runPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	run, err := d.view.Run(r.Context(), r.URL.Query().Get("flow"))
	if err != nil {
		return nil, err
	}
	data := runData{Run: run}
	if d.runs != nil {
		running := d.runs.Now()
		data.Conducts, data.Warnings = &running, running.Told(run.Line.Flow)
	}
	return data, nil
}

func (d *Dashboard) rescuePage(_ http.ResponseWriter, r *http.Request) (any, error) {
	return d.view.Rescue(r.Context())
}

type keptData struct{ *view.RescueDetail }

func (k keptData) heading() string { return k.RescueEntry.Path }

func (d *Dashboard) keptPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	kept, err := d.view.Rescued(r.Context(), r.PathValue("id"))
	return keptData{kept}, err
}

// nodesData is the page Nodes.
type nodesData struct {
	*view.Nodes
	People []access.Entry
	Known  bool // who may use the server is known here
}

func (d *Dashboard) nodesPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	nodes, err := d.view.Nodes(r.Context())
	if err != nil {
		return nil, err
	}
	data := nodesData{Nodes: nodes, Known: d.people != nil}
	if d.people != nil {
		data.People, err = d.people.List()
	}
	return data, err
}

// auditData is the page Audit.
type auditData struct {
	*view.Audit
	Who, Path, Kind, Text string
	Since, Until          string
	Older                 string // the address of the next page
	Newest                string // of the first one; empty: it is this one
}

func (d *Dashboard) auditPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	data := auditData{Who: strings.TrimSpace(q.Get("who")), Path: strings.TrimSpace(q.Get("path")), Kind: q.Get("kind"), Text: strings.TrimSpace(q.Get("q")), Since: q.Get("since"), Until: q.Get("until")}
	before, err := pageNumber(q.Get("before"))
	if err != nil {
		return nil, err
	}
	ask := view.AuditQuery{Who: data.Who, Path: data.Path, Text: data.Text, Before: before}
	if data.Kind != "" {
		ask.Kinds = []string{data.Kind}
	}
	if ask.Since, err = d.timeIn("since", data.Since); err != nil {
		return nil, err
	}
	if ask.Until, err = d.timeIn("until", data.Until); err != nil {
		return nil, err
	}
	if data.Audit, err = d.view.Audit(r.Context(), ask); err != nil {
		return nil, err
	}
	at := func(before uint64) string {
		v := url.Values{}
		for name, values := range q {
			if name != "before" && values[0] != "" {
				v.Set(name, values[0])
			}
		}
		if before > 0 {
			v.Set("before", strconv.FormatUint(before, 10))
		}
		return strings.TrimSuffix("/audit?"+v.Encode(), "?")
	}
	if data.Next > 0 {
		data.Older = at(data.Next)
	}
	if before > 0 {
		data.Newest = at(0)
	}
	return data, nil
}

// timeIn reads a time of a form, as browsers write them, or of an address. It is one of
// the clock that pages show.
func (d *Dashboard) timeIn(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(form, text, d.now().Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, &lockkeeper.InputError{Field: field, Value: text, Reason: "not a time", Next: "write one like 2026-01-31T09:00"}
}
