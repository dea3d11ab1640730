package storetest

import (
	"errors"
	"fmt"

	"lockkeeper"
	"lockkeeper/store"
)

// Check verifies the conditions that hold between any two transactions of the engine, and
// reports every violation:
//
// 1. No two grants conflict, confirmed or not. An expired grant that no request has found yet counts
// too: the request that finds it frees it first.
//  2. A waiting request waits on a record that exists, that came before it
//     or is granted, and that conflicts with it.
//  3. Only waiting requests wait on a record, and only grants have a fence.
//  4. No two grants have one fence, and no two records one ticket.
func Check(r store.Reader) error {
	recs, err := all(r)
	if err != nil {
		return err
	}
	return checkRecords(recs)
}

func all(r store.Reader) (recs []*store.Record, err error) {
	const page = 500
	for after := uint64(0); ; {
		some, err := r.List(after, page)
		if err != nil {
			return nil, err
		}
		recs = append(recs, some...)
		if len(some) < page {
			return recs, nil
		}
		after = some[len(some)-1].Ticket
	}
}

func checkRecords(recs []*store.Record) error {
	var wrong []error
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	byTicket := map[uint64]*store.Record{}
	byFence := map[uint64]*store.Record{}
	last := uint64(0)
	for _, rec := range recs {
		if rec.Ticket <= last {
			report("ticket %d of %s does not come after %d", rec.Ticket, name(rec), last)
		}
		last = rec.Ticket
		byTicket[rec.Ticket] = rec
		if rec.State == store.StateWaiting {
			if rec.Fence != 0 {
				report("%s waits and has fence %d", name(rec), rec.Fence)
			}
			continue
		}
		if other := byFence[rec.Fence]; other != nil || rec.Fence == 0 {
			report("fence %d of %s belongs to %v too", rec.Fence, name(rec), other)
		}
		byFence[rec.Fence] = rec
		if rec.WaitsOn != 0 {
			report("%s is granted and waits on %d", name(rec), rec.WaitsOn)
		}
		for _, other := range recs {
			if other == rec {
				break
			}
			if other.State != store.StateWaiting && conflict(rec.Locks, other.Locks) {
				report("%s and %s both hold: %v, %v", name(rec), name(other), rec.Locks, other.Locks)
			}
		}
	}
	for _, rec := range recs {
		if rec.State != store.StateWaiting {
			continue
		}
		if on := byTicket[rec.WaitsOn]; on == nil {
			report("%s waits on %d, which does not exist", name(rec), rec.WaitsOn)
		} else if on.State == store.StateWaiting && on.Ticket >= rec.Ticket {
			report("%s waits for %s, which came later", name(rec), name(on))
		} else if !conflict(rec.Locks, on.Locks) {
			report("%s waits on %s, which does not conflict with it", name(rec), name(on))
		}
	}
	return errors.Join(wrong...)
}

func name(r *store.Record) string {
	return fmt.Sprintf("%s (ticket %d, state %d)", r.Holder, r.Ticket, r.State)
}

// conflict applies the conflict rule to each pair of locks.
func conflict(a, b []lockkeeper.Lock) bool {
	for _, l := range a {
		for _, m := range b {
			if l.Conflicts(m) {
				return true
			}
		}
	}
	return false
}
