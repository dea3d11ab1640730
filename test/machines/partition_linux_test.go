//go:build machines

package machines

import (
	"fmt"
	"testing"
	"time"
)

// A fault separates a machine from the database.
type fault struct {
	name  string
	apply func(*bed, *machine)
}

var faults = []fault{
	{"link down", func(_ *bed, m *machine) { m.must("ip", "link", "set", card, "down") }},
	{"dropped", func(b *bed, m *machine) { b.cut(m) }},
	{"requests lost", func(b *bed, m *machine) { b.net.set(m, b.primary.machine, link{dropped: true}) }},
	{"answers lost", func(b *bed, m *machine) { b.net.set(b.primary.machine, m, link{dropped: true}) }},
}

// tries is how often work starts again.
const tries = 5

// The work of a machine that is cut off ends before its lease does, also if it ignores SIGTERM.
func TestPartition(t *testing.T) {
	leases := []time.Duration{3 * time.Second, 10 * time.Second}
	if torture() > 1 {
		leases = append(leases, 5*time.Second, 15*time.Second)
	}
	for _, lease := range leases {
		t.Run(lease.String(), func(t *testing.T) {
			b := newBed(t, plan{machines: len(faults) + 1})
			next := b.machines[len(faults)]
			var first, second []*command
			var keys []string
			for i, f := range faults {
				m := b.machines[i]
				for try := 0; ; try++ { // on a busy machine a short lease may end before the fault
					key := fmt.Sprint("file", i, "-", try)
					c := m.begin(b.exec(key, stubborn, time.Minute, "--ttl", lease.String())...)
					until(t, "work began before: "+f.name, func() bool { return b.checker.began(key, m) || c.ended() })
					if !c.ended() {
						first, keys = append(first, c), append(keys, key)
						break
					}
					if c.code() != 125 || try == tries {
						t.Fatal(c)
					}
				}
			}
			for i, f := range faults {
				f.apply(b, b.machines[i])
				second = append(second, next.begin(b.exec(keys[i], obedient, 100*time.Millisecond, "--wait", "1m")...))
			}
			for i, f := range faults {
				if second[i].code() != 0 {
					t.Errorf("%s: the next holder: %s", f.name, second[i])
				}
				if code := first[i].code(); code != 125 {
					t.Errorf("%s: the machine that was cut off: exit code %d, want 125: %s", f.name, code, first[i])
				}
			}
			b.checker.verify()
		})
	}
}

// exec returns the command line that runs checked work under a lock on a file with its name.
func (b *bed) exec(key, mode string, takes time.Duration, flags ...string) []string {
	argv := append([]string{"lockkeeper", "lock", "exec", "--write", "src/" + key + ".txt"}, flags...)
	return append(append(argv, "--"), b.checker.work(key, mode, takes)...)
}
