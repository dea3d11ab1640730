package sqlstore

import (
	"bytes"
	"cmp"
	"slices"
	"sync/atomic"

	"lockkeeper/store"
)

// A listCache holds the most recently listed records in ticket order, with the rows they were
// decoded from. A dashboard lists a space repeatedly and most records do not change, so the
// record of an unchanged row is not decoded again.
type listCache struct{ last atomic.Pointer[[]listedRow] }

type listedRow struct {
	row    *recordRow
	record *store.Record
}

// maxListed bounds how many records are remembered.
const maxListed = 20_000

func (r *listCache) behind(ticket uint64) []listedRow {
	known := r.last.Load()
	if known == nil {
		return nil
	}
	return (*known)[place(*known, int64(ticket)+1):]
}

// remember replaces the cached range of a page: from after a ticket to its last row, or to the
// end. A concurrent call may overwrite it, which only costs the next reader a little time.
func (r *listCache) remember(after uint64, page []listedRow, toEnd bool) {
	var known []listedRow
	if last := r.last.Load(); last != nil {
		known = *last
	}
	lo, hi := place(known, int64(after)+1), len(known)
	if !toEnd && len(page) > 0 {
		hi = max(lo, place(known, page[len(page)-1].row.ticket+1))
	}
	next := slices.Concat(known[:lo], page, known[hi:])
	next = next[:min(len(next), maxListed)]
	r.last.Store(&next)
}

// place returns the index at which a ticket is, or would be inserted.
func place(known []listedRow, ticket int64) int {
	at, _ := slices.BinarySearchFunc(known, ticket, func(e listedRow, ticket int64) int { return cmp.Compare(e.row.ticket, ticket) })
	return at
}

const listSQL = `SELECT ` + recordColumns + ` FROM requests r WHERE r.space = $1 AND r.ticket > $2 ORDER BY r.ticket LIMIT $3`

func (t *tx) List(after uint64, limit int) ([]*store.Record, error) {
	if t.seen != nil { // a writing transaction may read uncommitted rows, which must not be cached
		return t.records(listSQL, t.key, int64(after), int64(limit))
	}
	var page []listedRow
	var out []*store.Record
	known := t.listCache.behind(after)
	var row recordRow
	var token []byte
	dest := row.dest()
	err := t.query(listSQL, []any{t.key, int64(after), int64(limit)}, func(scan func(...any) error) error {
		if len(known) > 0 { // the row is probably the same one: reuse its equal strings
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
		rec, err := kept.record(t.space, t.locksCache)
		page, out = append(page, listedRow{&kept, rec}), append(out, rec)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.listCache.remember(after, page, len(page) < limit)
	return out, nil
}
