//go:build machines

package machines

import (
	"fmt"
	"testing"
	"time"
)

// Machines whose wall clocks differ by ten minutes in either direction hold leases and wait for
// each other as machines with the same clock do.
func TestSkewedClocks(t *testing.T) {
	skews := []time.Duration{10 * time.Minute, -10 * time.Minute, 0}
	b := newBed(t, plan{machines: 3, skews: skews})
	var started []*command
	for i, m := range b.machines {
		for range 3 {
			started = append(started, m.begin(b.exec("shared", stubborn, 300*time.Millisecond, "--ttl", "10s", "--wait", "2m")...))
		}
		// A lease is renewed several times.
		started = append(started, m.begin(b.exec(fmt.Sprint("long", i), stubborn, 14*time.Second, "--ttl", "10s")...))
	}
	for _, c := range started {
		if c.code() != 0 {
			t.Error(c)
		}
	}
	for i, m := range b.machines { // the clocks differ indeed
		for _, r := range b.checker.records() {
			if r.Machine == m.name && (r.Wall-skews[i]-time.Minute > r.Host || r.Wall-skews[i]+time.Minute < r.Host) {
				t.Fatalf("the clock of %s differs by %v from the host's, want %v", m.name, r.Wall-r.Host, skews[i])
			}
		}
	}
	// The lease of a machine that is cut off ends by the database's clock.
	var next []*command
	for i, m := range b.machines[:2] {
		key := fmt.Sprint("cut", i)
		cut := m.begin(b.exec(key, stubborn, 10*time.Minute, "--ttl", "10s")...)
		until(t, "work began", func() bool { return b.checker.began(key, m) || cut.ended() })
		b.cut(m)
		next = append(next, b.machines[2].begin(b.exec(key, obedient, time.Millisecond, "--wait", "1m")...))
	}
	for i, c := range next {
		if c.code() != 0 || c.took > soon {
			t.Errorf("after a machine whose clock differs by %v: %s", skews[i], c)
		}
	}
	b.checker.verify()
}
