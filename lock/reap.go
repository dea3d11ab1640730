package lock

import (
	"context"
	"errors"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// page is how many records one transaction lists.
const page = 1_000

// Recover makes one pass over all records and frees what its policy lets be
// freed without asking anybody. It returns how many that were, and prunes the
// event log. Nothing depends on it for correctness: a request that meets such a
// record frees it by itself.
func (m *Manager) Recover(ctx context.Context) (freed int, err error) {
	for after := uint64(0); ; {
		var recs []*store.Record
		var now lockkeeper.Instant
		err := m.store.View(ctx, func(r store.Reader) (err error) {
			now = r.Now().Lease
			recs, err = r.List(after, page)
			return err
		})
		if err != nil {
			return freed, err
		}
		for _, rec := range recs {
			after = rec.Ticket
			ok, err := m.recoverOne(ctx, rec, now)
			if err != nil {
				return freed, err
			}
			if ok {
				freed++
			}
		}
		if len(recs) < page {
			break
		}
	}
	return freed, m.store.Update(ctx, m.prune)
}

// prune cuts the event log to what Options keep.
func (m *Manager) prune(tx store.Tx) error {
	return tx.Prune(tx.Now().Wall.Add(-m.opt.KeepFor), m.opt.KeepEvents)
}

// StartReaper runs Recover every interval until the manager closes. A failed
// pass is handed to failed and tried again at the next interval.
func (m *Manager) StartReaper(interval time.Duration, failed func(error)) {
	m.owned.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-m.ctx.Done():
				return
			case <-tick.C:
			}
			if _, err := m.Recover(m.ctx); err != nil && !errors.Is(err, context.Canceled) {
				failed(err)
			}
		}
	})
}
