package view

import (
	"context"
	"slices"

	"lockkeeper/internal/job"
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

// ReadRecord reads the complete history as of one moment.
func ReadRecord(ctx context.Context, a *project.Project) (*Record, error) {
	rec := &Record{}
	err := a.Store.View(ctx, func(r store.Reader) (err error) {
		*rec = Record{}
		if rec.Landings, err = r.Landings(store.LandingQuery{}); err != nil {
			return err
		}
		for ev, err := range eachEvent(r, store.EventQuery{}) {
			if err != nil {
				return err
			}
			rec.Events = append(rec.Events, ev)
		}
		defer func() { slices.Reverse(rec.Items) }()
		return job.EachItem(r, "", func(it *lockkeeper.Item) bool { // the newest first
			rec.Items = append(rec.Items, it)
			return true
		})
	})
	return rec, err
}
