package lock

import (
	"context"
	"errors"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// Recover checks all records once, frees those whose policy allows it without asking a
// person, and returns how many it freed. It also prunes the event log. Correctness does not
// depend on Recover: a request that such a record blocks frees it too.
func (m *Manager) Recover(ctx context.Context) (freed int, err error) {
	for after := uint64(0); ; {
		var recs []*store.Record
		var now lockkeeper.Instant
		err := m.store.View(ctx, func(r store.Reader) (err error) {
			now = r.Now().Lease
			recs, err = r.List(after, pageSize)
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
		if len(recs) < pageSize {
			break
		}
	}
	return freed, m.store.Update(ctx, m.prune)
}

// prune drops the events that Options do not keep.
func (m *Manager) prune(tx store.Tx) error {
	return tx.Prune(tx.Now().Wall.Add(-m.opt.KeepFor), m.opt.KeepEvents)
}

// StartReaper runs Recover every interval until the manager closes. It passes errors to
// failed and tries again after the next interval.
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
