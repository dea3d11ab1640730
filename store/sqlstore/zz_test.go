package sqlstore

import (
	"fmt"
	"testing"
	"time"

	"lockkeeper/lock"
)

func TestZZ(t *testing.T) {
	sites(t, func(t *testing.T, s site) {
		m := lock.New(s.store(t, Options{}), lock.Options{})
		pairs := func(n int) time.Duration {
			b := time.Now()
			for i := range n {
				g, err := m.TryAcquire(t.Context(), request("h", fmt.Sprintf("x/%d/a", i), fmt.Sprintf("x/%d/b", i)))
				if err != nil {
					t.Fatal(err)
				}
				if err := g.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(b) / time.Duration(n)
		}
		pairs(20)
		e := pairs(100)
		for i := range 5 {
			var p []string
			for j := range 4000 {
				p = append(p, fmt.Sprintf("d/%d/%d", i, j))
			}
			if _, err := m.TryAcquire(t.Context(), request("h", p...)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 2000 {
			if _, err := m.TryAcquire(t.Context(), request("h", fmt.Sprintf("e/%d", i))); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("empty %v, full %v", e, pairs(100))
		t.Logf("full %v", pairs(100))
	})
}
