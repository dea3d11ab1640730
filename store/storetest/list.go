package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"lockkeeper"
	"lockkeeper/store"
)

// testListedAgain lists after every change, in pages and through each handle. A store that
// caches its lists must not return stale records.
func testListedAgain(t *testing.T, f Fixture) {
	clock := NewClock()
	handles := openAll(t, f, clock)
	model := map[string]*store.Record{}
	seed := rand.Uint64()
	t.Log("seed", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	for step := range 60 * Torture() {
		update(t, handles[chance.IntN(len(handles))], func(tx store.Tx) {
			rec := model[ident(chance.IntN(12))]
			switch draw := chance.IntN(8); {
			case rec == nil:
				rec := draft(tx, ident(freeIdent(model)), store.StateHeld, write(fmt.Sprint("p", step)))
				model[rec.ID] = rec
			case draw == 0:
				delete(model, rec.ID)
				check(tx.Delete(rec))
			case draw == 1:
				next := *rec
				next.Locks = lockkeeper.Normalize(write(fmt.Sprint("q", step), "always"))
				model[rec.ID] = &next
				check(tx.SetLocks(rec, next.Locks))
			default: // change one field
				next := *rec
				other := fullRecord(tx.Now(), rec.ID)
				[]func(){
					func() { next.Holder = fmt.Sprint("h", step) }, func() { next.TokenHash[step%32]++ }, func() { next.Metadata = map[string]string{"n": fmt.Sprint(step)} },
					func() { next.Process = other.Process }, func() { next.Heartbeat++ }, func() { next.State = store.StateLanding }, func() { next.Fence += 1 << 40 },
				}[chance.IntN(7)]()
				model[rec.ID] = &next
				check(tx.Save(&next))
			}
		})
		for _, s := range handles {
			compareListed(t, s, model, 1+chance.IntN(14))
		}
	}
}

func freeIdent(model map[string]*store.Record) (n int) {
	for model[ident(n)] != nil {
		n++
	}
	return n
}

func compareListed(t *testing.T, s store.Store, model map[string]*store.Record, page int) {
	t.Helper()
	var got []*store.Record
	view(t, s, func(r store.Reader) {
		got = nil
		for after, more := uint64(0), true; more; {
			some := get(r.List(after, page))
			got = append(got, some...)
			if more = len(some) == page; more {
				after = some[page-1].Ticket
			}
		}
	})
	if len(got) != len(model) {
		t.Fatalf("%d records are listed, want %d", len(got), len(model))
	}
	for i, rec := range got {
		if d := differ(rec, model[rec.ID]); d != "" {
			t.Fatal(d)
		}
		if i > 0 && got[i-1].Ticket >= rec.Ticket {
			t.Fatalf("ticket %d is listed behind %d", rec.Ticket, got[i-1].Ticket)
		}
	}
}
