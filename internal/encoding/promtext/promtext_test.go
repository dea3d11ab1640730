package promtext

import (
	"strings"
	"sync"
	"testing"
)

// A page groups the samples of a metric, escapes texts, and counts the values up to each limit of a histogram.
func TestPage(t *testing.T) {
	counted := NewCounter("a_total", "What\nit \\ counts.", "kind", "where")
	waits := NewHistogram("wait_seconds", "Waits.", []float64{.5, 1})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			counted.Add(1, "x", "q\"\\\n")
			waits.Observe(.5)
		})
	}
	all.Wait()
	counted.Add(2, "b", "")
	waits.Observe(.75)
	waits.Observe(7)
	p := NewPage()
	p.Gauge(1.5, "taken", "Taken.", "pool", "agent")
	p.Gauge(12, "limit", "Limit.", "pool", "agent")
	p.Gauge(0, "taken", "Taken.", "pool", "test")
	p.Include(counted, waits, NewCounter("none_total", "Nothing yet."), NewCounter("b_total", "By kind.", "kind"))
	var b strings.Builder
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	const want = `# HELP taken Taken.
# TYPE taken gauge
taken{pool="agent"} 1.5
taken{pool="test"} 0
# HELP limit Limit.
# TYPE limit gauge
limit{pool="agent"} 12
# HELP a_total What\nit \\ counts.
# TYPE a_total counter
a_total{kind="b",where=""} 2
a_total{kind="x",where="q\"\\\n"} 10
# HELP wait_seconds Waits.
# TYPE wait_seconds histogram
wait_seconds_bucket{le="0.5"} 10
wait_seconds_bucket{le="1"} 11
wait_seconds_bucket{le="+Inf"} 12
wait_seconds_sum 12.75
wait_seconds_count 12
# HELP none_total Nothing yet.
# TYPE none_total counter
none_total 0
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}
