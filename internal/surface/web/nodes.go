package web

import (
	"net/http"

	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/view"
)

// nodesData is the data of the page Nodes.
type nodesData struct {
	*view.Nodes
	People []access.Account
	Known  bool // the accounts of the server are known
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
