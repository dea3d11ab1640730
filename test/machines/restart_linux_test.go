//go:build machines

package machines

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Locks survive restarts of the server, most of them by SIGKILL: no grant overlaps with another,
// none is lost, and every command ends well.
func TestRestartedServer(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed of the restarts: %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	b := newBed(t, plan{machines: 3})
	const files, lanes, each = 4, 2, 4
	var loops []*command
	for i, m := range b.machines {
		for lane := range lanes {
			script := "set -e; cd " + project + "\n"
			for n := range each * torture() {
				argv := b.exec(fmt.Sprint("shared", (i+lane+n)%files), stubborn, time.Duration(100+random.IntN(400))*time.Millisecond, "--ttl", "20s", "--wait", "3m")
				for _, a := range argv {
					script += a + " "
				}
				script += "\n"
			}
			loops = append(loops, m.begin("sh", "-c", script))
		}
	}
	long := b.machines[0].begin(b.exec("long", stubborn, 15*time.Second, "--ttl", "30s")...)
	for round := range 3 * torture() {
		count := len(b.checker.records())
		until(t, "work begins", func() bool { return len(b.checker.records()) > count+2+random.IntN(4) || allEnded(loops) })
		if round%3 == 2 {
			b.primary.stopServer()
		} else {
			b.primary.crash()
		}
		b.primary.startServer()
	}
	for _, c := range append(loops, long) {
		if c.code() != 0 {
			t.Error(c)
		}
	}
	want, got := len(b.machines)*lanes*each*torture()+1, 0
	for _, r := range b.checker.records() {
		if r.What == "ended" {
			got++
		}
	}
	if got != want {
		t.Errorf("%d pieces of work came to their end, want %d", got, want)
	}
	b.checker.verify()
}

func allEnded(list []*command) bool {
	for _, c := range list {
		if !c.ended() {
			return false
		}
	}
	return true
}
