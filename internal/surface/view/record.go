package view

import (
	"context"

	"lockkeeper/internal/project"

	"lockkeeper"
	"lockkeeper/store"
)

// Record is the complete history in the store, each list in order.
type Record struct {
	Events   []lockkeeper.Event
	Landings []*lockkeeper.Landing
	Items    []*lockkeeper.Item
}

// recordPage is how many entries one query reads.
const recordPage = 1_000

// ReadRecord reads the complete history as of one moment.
func ReadRecord(ctx context.Context, a *project.Project) (*Record, error) {
	rec := &Record{}
	err := a.Store.View(ctx, func(r store.Reader) (err error) {
		*rec = Record{}
		if rec.Landings, err = r.Landings(store.LandingQuery{}); err != nil {
			return err
		}
		for after, full := uint64(0), true; full; {
			page, err := r.Events(store.EventQuery{After: after, Limit: recordPage})
			if err != nil {
				return err
			}
			rec.Events = append(rec.Events, page...)
			if full = len(page) == recordPage; full {
				after = page[len(page)-1].Seq
			}
		}
		for after, full := uint64(0), true; full; {
			page, err := r.Items(store.ItemQuery{After: after, Limit: recordPage})
			if err != nil {
				return err
			}
			rec.Items = append(rec.Items, page...)
			if full = len(page) == recordPage; full {
				after = page[len(page)-1].Seq
			}
		}
		return nil
	})
	return rec, err
}
