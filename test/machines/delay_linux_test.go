//go:build machines

package machines

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// roundTrip is the time of one round trip to the database from a machine that is far away.
const roundTrip = 200 * time.Millisecond

// A command on a machine that is far away needs at most six round trips for acquire, run and
// release, besides those that open its connection.
func TestFarMachine(t *testing.T) {
	b := newBed(t, plan{machines: 1})
	far := b.machines[0]
	argv := func(i int) []string {
		return []string{"lockkeeper", "lock", "exec", "--write", fmt.Sprintf("src/%d.txt", i), "--", "true"}
	}
	near := far.begin(argv(0)...)
	if near.code() != 0 {
		t.Fatal(near)
	}
	b.net.both(far, link{delay: roundTrip / 2}, b.primary.machine)
	const opening = 6 // TCP one, SCRAM three, parameters, the schema
	var best time.Duration
	for i := range 3 { // the best, because the host may be busy
		c := far.begin(argv(i)...)
		if c.code() != 0 {
			t.Fatal(c)
		}
		if best == 0 || c.took < best {
			best = c.took
		}
	}
	trips := float64(best-near.took) / float64(roundTrip)
	t.Logf("near %v, far %v: %.1f round trips", near.took.Round(time.Millisecond), best.Round(time.Millisecond), trips)
	if trips > 6+opening {
		t.Errorf("%.1f round trips, want at most 6 and %d for the connection", trips, opening)
	}
}

// Machines that are far away hold up no one who works on other files: no row stays locked while a
// packet is under way.
func TestFarMachineHoldsUpNobody(t *testing.T) {
	b := newBed(t, plan{machines: 3})
	near := b.machines[0]
	measure := func(goesOn func() bool) (worst time.Duration) {
		for i := 0; i < 5 || goesOn(); i++ {
			c := near.begin("lockkeeper", "lock", "exec", "--write", fmt.Sprintf("src/near%d.txt", i), "--wait", "1m", "--", "true")
			if c.code() != 0 {
				t.Fatal(c)
			}
			worst = max(worst, c.took)
		}
		return worst
	}
	quiet := measure(func() bool { return false })
	var far []*command
	for i, m := range b.machines[1:] {
		b.net.both(m, link{delay: roundTrip / 2}, b.primary.machine)
		for j := range 3 {
			far = append(far, m.begin("lockkeeper", "lock", "exec", "--write", fmt.Sprintf("src/far%d-%d.txt", i, j), "--wait", "1m", "--", "true"))
		}
	}
	beside := measure(func() bool { return slices.ContainsFunc(far, func(c *command) bool { return !c.ended() }) })
	t.Logf("quiet %v, beside machines that are far away %v", quiet, beside)
	if beside > quiet+time.Second {
		t.Errorf("a command took %v beside machines that are far away, and %v without them", beside, quiet)
	}
	for _, c := range far {
		if c.code() != 0 {
			t.Error(c)
		}
	}
}
