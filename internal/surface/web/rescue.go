package web

import (
	"net/http"

	"lockkeeper/internal/surface/view"
)

func (d *Dashboard) rescuePage(_ http.ResponseWriter, r *http.Request) (any, error) {
	return d.view.Rescue(r.Context())
}

type keptData struct{ *view.RescueDetail }

func (k keptData) heading() string { return k.RescueEntry.Path }

func (d *Dashboard) keptPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	kept, err := d.view.Rescued(r.Context(), r.PathValue("id"))
	return keptData{kept}, err
}
