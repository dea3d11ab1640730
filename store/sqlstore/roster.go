package sqlstore

import (
	"bytes"
	"cmp"
	"slices"
	"sync/atomic"

	"lockkeeper"
)

// roster remembers the records that were listed last, by rising ticket, with the rows they
// were read from. Whoever lists a space does so again and again, and most of what there is
// has not changed: a row that is as it was is not made a record again.
type roster struct{ last atomic.Pointer[[]enrolled] }

type enrolled struct {
	row    *recordRow
	record *lockkeeper.Record
}

// maxEnrolled bounds how many records are remembered.
const maxEnrolled = 20_000

// behind is what is remembered of the records behind a ticket.
func (r *roster) behind(ticket uint64) []enrolled {
	known := r.last.Load()
	if known == nil {
		return nil
	}
	return (*known)[place(*known, int64(ticket)+1):]
}

// remember puts a page in the place of what was known of its range: from behind a ticket
// to its last, or to the end. Whoever else does so at the same time may undo it, which
// costs the next one a little time.
func (r *roster) remember(after uint64, page []enrolled, toEnd bool) {
	var known []enrolled
	if last := r.last.Load(); last != nil {
		known = *last
	}
	lo, hi := place(known, int64(after)+1), len(known)
	if !toEnd && len(page) > 0 {
		hi = max(lo, place(known, page[len(page)-1].row.ticket+1))
	}
	next := slices.Concat(known[:lo], page, known[hi:])
	next = next[:min(len(next), maxEnrolled)]
	r.last.Store(&next)
}

// place is where a ticket is, or would be.
func place(known []enrolled, ticket int64) int {
	at, _ := slices.BinarySearchFunc(known, ticket, func(e enrolled, ticket int64) int { return cmp.Compare(e.row.ticket, ticket) })
	return at
}

const listSQL = `SELECT ` + recordColumns + ` FROM requests r WHERE r.space = $1 AND r.ticket > $2 ORDER BY r.ticket LIMIT $3`

func (t *tx) List(after uint64, limit int) ([]*lockkeeper.Record, error) {
	if t.seen != nil { // what it reads may never have been
		return t.records(listSQL, t.key, int64(after), int64(limit))
	}
	var page []enrolled
	var out []*lockkeeper.Record
	known := t.roster.behind(after)
	var row recordRow
	var token []byte
	dest := row.dest()
	err := t.query(listSQL, []any{t.key, int64(after), int64(limit)}, func(scan func(...any) error) error {
		if len(known) > 0 { // most likely it is this one: what is the same is not copied
			row = *known[0].row
		}
		row.token = token
		if err := scan(dest...); err != nil {
			return err
		}
		token = row.token
		for len(known) > 0 && known[0].row.ticket < row.ticket {
			known = known[1:]
		}
		if len(known) > 0 && known[0].row.plainRow == row.plainRow && bytes.Equal(known[0].row.token, token) {
			page, out = append(page, known[0]), append(out, known[0].record)
			known = known[1:]
			return nil
		}
		kept := row
		kept.token = bytes.Clone(token)
		rec, err := kept.record(t.space, t.known)
		page, out = append(page, enrolled{&kept, rec}), append(out, rec)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.roster.remember(after, page, len(page) < limit)
	return out, nil
}
