package memstore

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// tx is a transaction; the store's mutex is held for as long as it lives.
type tx struct {
	*Store
	now   store.Moment
	undo  []undo
	woken []string
	stale time.Time // landings and items before it go when the transaction is done

	asked places // of what Overlapping was last asked about
}

// undo is how to take one change back.
type undo struct {
	kind  undoKind
	slot  *slot
	rec   *store.Record // what was in the slot
	other func()        // takes a rarer change back
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
			t.take(u.slot)
			t.line = t.line[:len(t.line)-1] // the newest there is: later ones were undone
			t.left--
		case undoReplace:
			t.replace(u.slot, u.rec)
		case undoDelete:
			t.put(u.slot)
		case undoAppend:
			t.log.pop()
		case undoOther:
			u.other()
		}
	}
}

// remember lets a value of a map be as it is now after a rollback.
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
	t.trie.locate(q.Locks, &t.asked)
	t.asked.conflicting(func(asked *lockkeeper.Lock, path string, e entry) {
		if q.Counts(e.slot.rec) {
			held := lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: e.kind}, Mode: e.mode}
			found = append(found, store.Overlap{Asked: *asked, Lock: held, Record: e.slot.rec})
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
	i, _ := slices.BinarySearchFunc(t.line, after+1, func(s *slot, ticket uint64) int { return cmp.Compare(s.rec.Ticket, ticket) })
	var out []*store.Record
	for ; i < len(t.line) && len(out) < limit; i++ {
		if !t.line[i].left {
			out = append(out, t.line[i].rec)
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
	if last := len(t.line) - 1; t.byID[rec.ID] != nil || last >= 0 && t.line[last].rec.Ticket >= rec.Ticket {
		return fmt.Errorf("record %s with ticket %d is not new", rec.ID, rec.Ticket)
	}
	s := t.newSlot(rec)
	t.line = append(t.line, s)
	t.put(s)
	t.undo = append(t.undo, undo{kind: undoInsert, slot: s})
	return nil
}

func (t *tx) Save(rec *store.Record) error {
	next := *rec
	return t.exchange(rec, &next)
}

func (t *tx) SetLocks(rec *store.Record, locks []lockkeeper.Lock) error {
	next := *rec
	next.Locks = locks
	return t.exchange(rec, &next)
}

func (t *tx) exchange(rec, next *store.Record) error {
	s := t.byID[rec.ID]
	if s == nil {
		return fmt.Errorf("record %s is not stored", rec.ID)
	}
	t.undo = append(t.undo, undo{kind: undoReplace, slot: s, rec: s.rec})
	t.replace(s, next)
	return nil
}

func (t *tx) Delete(rec *store.Record) error {
	s := t.byID[rec.ID]
	if s == nil {
		return fmt.Errorf("record %s is not stored", rec.ID)
	}
	t.take(s)
	t.undo = append(t.undo, undo{kind: undoDelete, slot: s})
	return nil
}

// put makes a slot of the line count.
func (t *tx) put(s *slot) {
	if s.left {
		s.left = false
		t.left--
	}
	t.byID[s.rec.ID] = s
	t.plant(s)
	t.park(s)
}

// take makes it count no more.
func (t *tx) take(s *slot) {
	delete(t.byID, s.rec.ID)
	t.uproot(s)
	t.unpark(s)
	s.left = true
	t.left++
}

// replace changes what is in a slot.
func (t *tx) replace(s *slot, next *store.Record) {
	regrow := !slices.Equal(s.rec.Locks, next.Locks)
	if regrow {
		t.uproot(s)
	}
	t.unpark(s)
	s.rec = next
	t.park(s)
	if regrow {
		t.plant(s)
	}
}

// plant puts the locks of a slot into the trie.
func (t *tx) plant(s *slot) {
	if !t.asked.of(s.rec.Locks) {
		t.trie.locate(s.rec.Locks, &t.asked)
	}
	t.trie.add(&t.asked, s)
	t.asked.locks = nil // they are not where they were
}

// uproot takes them out again.
func (t *tx) uproot(s *slot) {
	t.trie.remove(s)
	t.asked.locks = nil
}

func (t *tx) park(s *slot) {
	if on := s.rec.WaitsOn; on != 0 {
		t.parked[on] = append(t.parked[on], s)
	}
}

func (t *tx) unpark(s *slot) {
	on := s.rec.WaitsOn
	if on == 0 {
		return
	}
	rest := slices.DeleteFunc(t.parked[on], func(o *slot) bool { return o == s })
	if len(rest) == 0 {
		delete(t.parked, on)
	} else {
		t.parked[on] = rest
	}
}

func (t *tx) Waiters(on uint64) ([]*store.Record, error) {
	parked := t.parked[on]
	out := make([]*store.Record, len(parked))
	for i, s := range parked {
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

// Prune forgets; forgetting is not undone when the transaction fails. Landings
// and items wait until it is known not to: what it ended may be under way again.
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
