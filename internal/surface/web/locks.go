package web

import (
	"net/http"

	"lockkeeper/internal/surface/view"
)

// locksData is the data of the page Locks.
type locksData struct {
	*view.Locks
	Picture picture
}

func (d *Dashboard) locksPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	locks, err := d.view.Locks(r.Context())
	if err != nil {
		return nil, err
	}
	return locksData{Locks: locks, Picture: draw(locks.Graph)}, nil
}
