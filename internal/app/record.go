package app

import (
	"context"

	"lockkeeper"
)

// Record is all that the store keeps of what happened in a codebase, each list in the
// order of numbers.
type Record struct {
	Events   []lockkeeper.Event
	Landings []*lockkeeper.Landing
	Items    []*lockkeeper.Item
}

// recordPage is how many entries one look reads at most.
const recordPage = 1_000

// Record reads the whole record, as of one moment.
func (a *App) Record(ctx context.Context) (*Record, error) {
	rec := &Record{}
	err := a.store.View(ctx, func(r lockkeeper.Reader) (err error) {
		*rec = Record{}
		if rec.Landings, err = r.Landings(lockkeeper.LandingQuery{}); err != nil {
			return err
		}
		for after, full := uint64(0), true; full; {
			page, err := r.Events(lockkeeper.EventQuery{After: after, Limit: recordPage})
			if err != nil {
				return err
			}
			rec.Events = append(rec.Events, page...)
			if full = len(page) == recordPage; full {
				after = page[len(page)-1].Seq
			}
		}
		for after, full := uint64(0), true; full; {
			page, err := r.Items(lockkeeper.ItemQuery{After: after, Limit: recordPage})
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
