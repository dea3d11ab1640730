package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"lockkeeper"
	"lockkeeper/store/memstore"
)

func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := memstore.New("x", memstore.Options{})
			rnd := rand.New(rand.NewPCG(1, 1))
			keys := make([]string, n)
			for i := range n {
				s.Update(b.Context(), func(tx lockkeeper.Tx) error {
					seq, _ := tx.Append(lockkeeper.Event{})
					it := &lockkeeper.Item{ID: fmt.Sprint("i", seq), Seq: seq, Key: fmt.Sprint("k", seq), Status: lockkeeper.ItemQueued, Stage: lockkeeper.StageReady, Rank: rnd.IntN(5), Tag: uint64(rnd.IntN(1000))}
					keys[i] = lockkeeper.OnPath(lockkeeper.Write, fmt.Sprint("a/b/", i))
					if i%2 == 0 {
						it.Stage, it.ParkedOn, it.Due = lockkeeper.StageParked, keys[i], lockkeeper.Instant(rnd.IntN(1e9)+1)
					}
					return tx.InsertItem(it)
				})
			}
			b.ReportAllocs()
			b.ResetTimer()
			var r0, r1 syscall.Rusage
			syscall.Getrusage(0, &r0)
			defer func() { syscall.Getrusage(0, &r1); b.ReportMetric(float64(r1.Utime.Nano()-r0.Utime.Nano())/float64(b.N), "cpu-ns/op") }()
			var last *lockkeeper.Item
			for i := range b.N {
				err := s.Update(b.Context(), func(tx lockkeeper.Tx) error {
					key := keys[(i*7919*2)%n/2*2]
					tx.ParkedKeys(key + "/")
					roused, err := lockkeeper.Rouse(tx, key)
					if err != nil {
						return err
					}
					if last != nil {
						x := last.Clone()
						x.Stage, x.Status, x.ParkedOn, x.Due = lockkeeper.StageParked, lockkeeper.ItemQueued, key, 5000
						if !roused {
							x.Stage, x.ParkedOn, x.Due = lockkeeper.StageReady, "", 0
						}
						if err := tx.SaveItem(x); err != nil {
							return err
						}
					}
					it, err := tx.FirstReady("")
					if err != nil {
						return err
					}
					x := it.Clone()
					x.Stage, x.Status = lockkeeper.StageRunning, lockkeeper.ItemDispatched
					last = x
					tx.NextDue()
					return tx.SaveItem(x)
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
