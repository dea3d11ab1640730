package web

import (
	"net/http"

	"lockkeeper/internal/surface/view"
)

type locksData struct {
	*view.Locks
	Picture  picture
	Internal bool // internal locks are shown
	Hidden   int  // grants and requests that have only internal locks, and are not shown
	Switch   string

	Held, Stale, Waiting []view.LockStatus // those that are shown
	AllHeld              int
	Pages                pager
	Writers              []view.Writer // those that are shown
	WriterPages          pager
}

// writersOfPage is how many last writers the page shows.
const writersOfPage = 50

// locksPage shows who holds what. It leaves out internal locks, unless they are stale or the query asks for them:
// they only order the steps of a run.
func (d *Dashboard) locksPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	locks, err := d.view.Locks(r.Context())
	if err != nil {
		return nil, err
	}
	data := locksData{Locks: locks, Picture: draw(locks.Graph), Internal: r.URL.Query().Get("internal") != "", Stale: locks.Stale}
	show := func(list []view.LockStatus) (shown []view.LockStatus) {
		for _, s := range list {
			if s.Internal && !data.Internal {
				data.Hidden++
				continue
			}
			shown = append(shown, s)
		}
		return shown
	}
	data.Held, data.Waiting = show(locks.Held), show(locks.Waiting)
	data.AllHeld = len(data.Held)
	if data.Held, data.Pages, err = paged(data.Held, r, "page"); err != nil {
		return nil, err
	}
	if data.Writers, data.WriterPages, err = pagedBy(locks.Writers, r, "writers", writersOfPage); err != nil {
		return nil, err
	}
	data.Switch = changedAddress(r, "internal", "1", "page")
	if data.Internal {
		data.Switch = changedAddress(r, "internal", "", "page")
	}
	return data, nil
}
