package sqlstore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lockkeeper"
)

func probeFill(t *testing.T, st lockkeeper.Store, n int) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for done := 0; done < n; {
		err := st.Update(t.Context(), func(tx lockkeeper.Tx) error {
			for range min(5000, n-done) {
				seq, err := tx.Append(lockkeeper.Event{Kind: lockkeeper.EventQueued, At: tx.Now().Wall})
				if err != nil {
					return err
				}
				it := &lockkeeper.Item{ID: fmt.Sprint("i", seq), Seq: seq, Key: fmt.Sprint("k", seq), Workflow: "w", Policy: "agent", Locks: write(fmt.Sprint("p", seq)), Status: lockkeeper.ItemQueued, Stage: lockkeeper.StageReady, Rank: rnd.IntN(5), Tag: uint64(rnd.IntN(1000)), QueuedAt: tx.Now().Wall}
				switch rnd.IntN(4) {
				case 0:
					it.Stage, it.ParkedOn, it.Due = lockkeeper.StageParked, fmt.Sprint("path:p", rnd.IntN(50)), lockkeeper.Instant(rnd.IntN(1000)+1)
				case 1:
					it.Stage, it.Status = lockkeeper.StageEnded, lockkeeper.ItemCompleted
				}
				if rnd.IntN(1000) == 0 {
					it.Stage, it.Status, it.ParkedOn = lockkeeper.StageRunning, lockkeeper.ItemDispatched, ""
				}
				if err := tx.InsertItem(it); err != nil {
					return err
				}
				done++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestProbe(t *testing.T) {
	sites(t, func(t *testing.T, s site) {
		st := s.store(t, Options{})
		warm := func() {
			st.Update(t.Context(), func(tx lockkeeper.Tx) error { tx.FirstReady(""); tx.FirstParked("path:p1"); tx.NextDue(); tx.Item("i3"); tx.ItemWithKey("k3"); return nil })
		}
		warm()
		began := time.Now()
		probeFill(t, st, 100_000)
		t.Logf("fill %v", time.Since(began))
		err := st.Update(t.Context(), func(tx lockkeeper.Tx) error {
			clock := func(what string, fn func() error) {
				began := time.Now()
				const n = 50
				for range n {
					if err := fn(); err != nil {
						t.Error(err)
					}
				}
				t.Logf("%-20s %v", what, time.Since(began)/n)
			}
			clock("first ready", func() error { _, err := tx.FirstReady(""); return err })
			clock("first ready none", func() error { _, err := tx.FirstReady("x"); return err })
			clock("first parked", func() error { _, err := tx.FirstParked("path:p7"); return err })
			clock("first parked none", func() error { _, err := tx.FirstParked("path:px"); return err })
			clock("keys", func() error { k, err := tx.ParkedKeys("path:p1"); _ = k; return err })
			clock("due", func() error { _, err := tx.NextDue(); return err })
			clock("due items", func() error { _, err := tx.DueItems(100, 10); return err })
			clock("item", func() error { _, err := tx.Item("i5000"); return err })
			clock("key", func() error { _, err := tx.ItemWithKey("k5000"); return err })
			clock("dispatched", func() error { _, err := tx.Items(lockkeeper.ItemQuery{Status: "dispatched", Limit: 10, After: 50000}); return err })
			clock("dispatched latest", func() error { _, err := tx.Items(lockkeeper.ItemQuery{Status: "dispatched", Limit: 10, Latest: true}); return err })
			clock("error", func() error { _, err := tx.Items(lockkeeper.ItemQuery{Status: "error", Limit: 10}); return err })
			clock("queued", func() error { _, err := tx.Items(lockkeeper.ItemQuery{Status: "queued", Limit: 10, After: 90000}); return err })
			clock("any", func() error { _, err := tx.Items(lockkeeper.ItemQuery{Limit: 10, After: 90000}); return err })
			clock("dispatch", func() error {
				it, err := tx.FirstReady("")
				if err != nil { return err }
				n := it.Clone()
				n.Stage, n.Status = lockkeeper.StageRunning, lockkeeper.ItemDispatched
				return tx.SaveItem(n)
			})
			clock("rouse", func() error { _, err := lockkeeper.Rouse(tx, "path:p3"); return err })
			b := time.Now()
			c, err := tx.Census()
			t.Logf("census %v %+v", time.Since(b), c)
			b = time.Now()
			err = tx.Prune(tx.Now().Wall, 1000000)
			t.Logf("prune %v", time.Since(b))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		st.View(t.Context(), func(r lockkeeper.Reader) error {
			x := r.(*tx)
			for name, q := range map[string][]any{"ready": {firstReadySQL, x.key, "r"}, "parked": {firstParkedSQL, x.key, "r"}, "nextkey": {parkedKeysSQL, x.key, "r"}, "due": {nextDueSQL, x.key}, "dueitems": {dueItemsSQL, x.key, int64(7), int64(3)}, "id": {itemSQL, x.key, "i"}, "key": {itemWithKeySQL, x.key, "i"}, "census": {censusSQL, x.key}, "old": {oldItemsSQL, x.key, int64(10), int64(7)}} {
				ex := "EXPLAIN "
				if s.kind == "sqlite" { ex += "QUERY PLAN " }
				plan := ""
				err := x.query(ex+q[0].(string), q[1:], func(scan func(...any) error) error {
					var a, b, c int64
					var d string
					if s.kind == "sqlite" { err := scan(&a, &b, &c, &d); plan += d + "\n"; return err }
					err := scan(&d); plan += d + "\n"; return err
				})
				t.Log(name, err, "\n", strings.TrimSpace(plan))
			}
			return nil
		})
	})
}
