package memstore

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// A tx is a transaction. The store's mutex is locked while it exists.
type tx struct {
	*Store
	now   store.Moment
	undo  []undo
	woken []string
	stale time.Time // landings and items before this time are dropped after the transaction

	located lockNodes // the nodes that the last call of Overlapping found
}

// An undo says how to roll back one change.
type undo struct {
	kind  undoKind
	cell  *recordCell
	rec   *store.Record // the previous record of the cell
	other func()        // rolls back a rarer change
}

type undoKind uint8

const (
	undoInsert undoKind = iota
	undoReplace
	undoDelete
	undoAppend
	undoOther
)

func (t *tx) rollback() {
	for _, u := range slices.Backward(t.undo) {
		switch u.kind {
		case undoInsert:
			t.remove(u.cell)
			t.tickets = t.tickets[:len(t.tickets)-1] // the inserted record is the newest, because the inserts after it were already undone
			t.left--
		case undoReplace:
			t.replace(u.cell, u.rec)
		case undoDelete:
			t.restore(u.cell)
		case undoAppend:
			t.log.pop()
		case undoOther:
			u.other()
		}
	}
}

// remember makes a rollback restore the value of a key in a map.
func remember[K comparable, V any](t *tx, m map[K]V, key K) {
	old, had := m[key]
	t.undo = append(t.undo, undo{kind: undoOther, other: func() {
		if had {
			m[key] = old
		} else {
			delete(m, key)
		}
	}})
}

func (t *tx) Now() store.Moment { return t.now }

func (t *tx) Get(id string) (*store.Record, error) {
	if s := t.byID[id]; s != nil {
		return s.rec, nil
	}
	return nil, nil
}

func (t *tx) Overlapping(q store.Query) (found []store.Overlap, more bool, err error) {
	t.trie.locate(q.Locks, &t.located)
	t.located.conflicting(func(asked *lockkeeper.Lock, path string, e entry) {
		if q.Counts(e.cell.rec) {
			held := lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: e.kind}, Mode: e.mode}
			found = append(found, store.Overlap{Asked: *asked, Lock: held, Record: e.cell.rec})
		}
	})
	if len(found) > 1 {
		slices.SortFunc(found, store.Overlap.Compare)
	}
	if q.Limit > 0 && len(found) > q.Limit {
		return found[:q.Limit], true, nil
	}
	return found, false, nil
}

func (t *tx) List(after uint64, limit int) ([]*store.Record, error) {
	i, _ := slices.BinarySearchFunc(t.tickets, after+1, func(s *recordCell, ticket uint64) int { return cmp.Compare(s.rec.Ticket, ticket) })
	var out []*store.Record
	for ; i < len(t.tickets) && len(out) < limit; i++ {
		if !t.tickets[i].left {
			out = append(out, t.tickets[i].rec)
		}
	}
	return out, nil
}

func (t *tx) Events(q store.EventQuery) ([]lockkeeper.Event, error) { return t.log.page(q), nil }

func (t *tx) Append(ev lockkeeper.Event) (uint64, error) {
	ev.Space = t.space
	seq := t.log.push(&ev, t.opt.KeepEvents)
	t.undo = append(t.undo, undo{kind: undoAppend})
	return seq, nil
}

func (t *tx) Insert(rec *store.Record) error {
	if last := len(t.tickets) - 1; t.byID[rec.ID] != nil || last >= 0 && t.tickets[last].rec.Ticket >= rec.Ticket {
		return fmt.Errorf("record %s with ticket %d is not new", rec.ID, rec.Ticket)
	}
	s := t.newCell(rec)
	t.tickets = append(t.tickets, s)
	t.restore(s)
	t.undo = append(t.undo, undo{kind: undoInsert, cell: s})
	return nil
}

func (t *tx) Save(rec *store.Record) error {
	next := *rec
	return t.replaceRecord(rec, &next)
}

func (t *tx) SetLocks(rec *store.Record, locks []lockkeeper.Lock) error {
	next := *rec
	next.Locks = locks
	return t.replaceRecord(rec, &next)
}

func (t *tx) replaceRecord(rec, next *store.Record) error {
	s := t.byID[rec.ID]
	if s == nil {
		return fmt.Errorf("record %s is not stored", rec.ID)
	}
	t.undo = append(t.undo, undo{kind: undoReplace, cell: s, rec: s.rec})
	t.replace(s, next)
	return nil
}

func (t *tx) Delete(rec *store.Record) error {
	s := t.byID[rec.ID]
	if s == nil {
		return fmt.Errorf("record %s is not stored", rec.ID)
	}
	t.remove(s)
	t.undo = append(t.undo, undo{kind: undoDelete, cell: s})
	return nil
}

// restore makes the record in a cell visible.
func (t *tx) restore(s *recordCell) {
	if s.left {
		s.left = false
		t.left--
	}
	t.byID[s.rec.ID] = s
	t.addLocks(s)
	t.addWaiter(s)
}

// remove makes the record in a cell invisible.
func (t *tx) remove(s *recordCell) {
	delete(t.byID, s.rec.ID)
	t.removeLocks(s)
	t.removeWaiter(s)
	s.left = true
	t.left++
}

func (t *tx) replace(s *recordCell, next *store.Record) {
	regrow := !slices.Equal(s.rec.Locks, next.Locks)
	if regrow {
		t.removeLocks(s)
	}
	t.removeWaiter(s)
	s.rec = next
	t.addWaiter(s)
	if regrow {
		t.addLocks(s)
	}
}

func (t *tx) addLocks(s *recordCell) {
	if !t.located.of(s.rec.Locks) {
		t.trie.locate(s.rec.Locks, &t.located)
	}
	t.trie.add(&t.located, s)
	t.located.locks = nil // the nodes may have moved
}

func (t *tx) removeLocks(s *recordCell) {
	t.trie.remove(s)
	t.located.locks = nil
}

func (t *tx) addWaiter(s *recordCell) {
	if on := s.rec.WaitsOn; on != 0 {
		t.waiters[on] = append(t.waiters[on], s)
	}
}

func (t *tx) removeWaiter(s *recordCell) {
	on := s.rec.WaitsOn
	if on == 0 {
		return
	}
	rest := slices.DeleteFunc(t.waiters[on], func(o *recordCell) bool { return o == s })
	if len(rest) == 0 {
		delete(t.waiters, on)
	} else {
		t.waiters[on] = rest
	}
}

func (t *tx) Waiters(on uint64) ([]*store.Record, error) {
	waiters := t.waiters[on]
	out := make([]*store.Record, len(waiters))
	for i, s := range waiters {
		out[i] = s.rec
	}
	slices.SortFunc(out, func(a, b *store.Record) int { return cmp.Compare(a.Ticket, b.Ticket) })
	return out, nil
}

func (t *tx) Denial(key string) (uint64, error) { return t.denials[key].digest, nil }

func (t *tx) SetDenial(key string, digest uint64) error {
	remember(t, t.denials, key)
	t.denials[key] = denial{digest: digest, at: t.now.Wall}
	return nil
}

// Prune drops events and denials at once, even if the transaction fails later. Landings and
// items are dropped only after it succeeded, because a rollback may open them again.
func (t *tx) Prune(before time.Time, keep int) error {
	t.log.prune(before, keep)
	t.stale = before
	for key, d := range t.denials {
		if t.now.Wall.Sub(d.at) > time.Hour {
			delete(t.denials, key)
		}
	}
	return nil
}

func (t *tx) Wake(id string) { t.woken = append(t.woken, id) }
