//go:build machines

package machines

import (
	"fmt"
	"testing"
	"time"
)

// roundTrip is the time of one round trip to the database from a machine that is far away.
const roundTrip = 200 * time.Millisecond

// A command needs at most six round trips for acquire, run and release, and three more that open
// its connection: the user, and two of SCRAM. TCP's own is not counted.
func TestRoundTrips(t *testing.T) {
	b := newBed(t, plan{machines: 1})
	far := b.machines[0]
	b.net.both(far, link{delay: roundTrip / 2}, b.primary.machine)
	const opening, work = 3, 6
	for range 2 {
		before := b.net.tripsOf(far)
		c := far.begin("lockkeeper", "lock", "exec", "--write", "src/a.txt", "--", "true")
		if c.code() != 0 {
			t.Fatal(c)
		}
		trips := b.net.tripsOf(far) - before
		t.Logf("%d round trips, %v", trips, c.took.Round(time.Millisecond))
		if trips > opening+work {
			t.Errorf("%d round trips, want at most %d", trips, opening+work)
		}
	}
}

// waits counts the moments in which the server waits for a client of a machine that is far away,
// in a transaction that has changed or locked rows.
const waits = `DO $$
DECLARE n int := 0;
BEGIN
  FOR i IN 1..50 LOOP
    PERFORM pg_stat_clear_snapshot();
    n := n + (SELECT count(*) FROM pg_stat_activity WHERE client_addr <<= '10.77.0.0/28' AND state LIKE 'idle in transaction%'
      AND backend_xid IS NOT NULL AND clock_timestamp() - state_change > interval '100 ms');
    PERFORM pg_sleep(0.02);
  END LOOP;
  CREATE TABLE IF NOT EXISTS public.waits (n int);
  INSERT INTO public.waits VALUES (n);
END $$`

// Machines that are far away hold up no one who works on other files: no row stays locked while a
// packet is under way.
func TestFarMachineHoldsUpNobody(t *testing.T) {
	b := newBed(t, plan{machines: 3})
	near := b.machines[0]
	var far []*command
	for i, m := range b.machines[1:] {
		b.net.both(m, link{delay: roundTrip / 2}, b.primary.machine)
		for j := range 3 {
			far = append(far, m.begin("lockkeeper", "lock", "exec", "--write", fmt.Sprintf("src/far%d-%d.txt", i, j), "--wait", "1m", "--", "true"))
		}
	}
	var worst time.Duration
	for i := 0; !allEnded(far); i++ {
		c := near.begin("lockkeeper", "lock", "exec", "--write", fmt.Sprintf("src/near%d.txt", i), "--wait", "1m", "--", "true")
		b.primary.sql(waits)
		if c.code() != 0 {
			t.Fatal(c)
		}
		worst = max(worst, c.took)
	}
	for _, c := range far {
		if c.code() != 0 {
			t.Error(c)
		}
	}
	if n := b.primary.sql("SELECT coalesce(sum(n), 0) FROM public.waits"); n != "0" {
		t.Errorf("in %s moments the server waited for a machine that is far away while rows were locked; a command of another machine took up to %v", n, worst)
	}
	t.Logf("a command of the near machine took up to %v", worst)
}
