package api

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeTime limits how long a scrape may read the store.
const scrapeTime = 5 * time.Second

// stock collects the gauges of the metrics. It reads the store at each scrape.
type stock struct{ s *Server }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("lockkeeper_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector. It describes nothing, because the set of gauges varies.
func (k *stock) Describe(chan<- *prometheus.Desc) {}

func (k *stock) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	gauge := func(value float64, name, help string, labels ...string) {
		var names []string
		var values []string
		for i := 0; i+1 < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		out <- prometheus.MustNewConstMetric(desc(name, help, names...), prometheus.GaugeValue, value, values...)
	}
	wrong := func(err error) {
		out <- prometheus.NewInvalidMetric(desc("store", "The store could not be read."), err)
	}

	gauge(float64(k.s.rooms[roomStreams].taken()), "sse_clients", "Clients that follow the events.")
	entries, err := k.s.opt.App.Locks.Requests(ctx)
	if err != nil {
		wrong(err)
		return
	}
	states := map[string]int{"held": 0, "waiting": 0}
	for _, e := range entries {
		states[e.State]++
	}
	for state, n := range states {
		gauge(float64(n), "grants", "Grants and waiting requests by state.", "state", state)
	}
	census, err := k.s.queue.Census(ctx)
	if err != nil {
		wrong(err)
		return
	}
	for stage, n := range map[string]int{"ready": census.Ready, "parked": census.Waiting, "running": census.Running, "failed": census.Failed} {
		gauge(float64(n), "queue_items", "Items of the queue by stage.", "stage", stage)
	}
	now, err := k.s.opt.View.Now(ctx, 0)
	if err != nil {
		wrong(err)
		return
	}
	for _, slots := range now.Slots {
		gauge(float64(slots.Taken), "slots_taken", "Slots that are taken, by pool.", "pool", slots.Pool)
		gauge(float64(slots.Limit), "slots_limit", "Slots that there are, by pool.", "pool", slots.Pool)
	}
	for _, need := range now.Needs.Kinds {
		gauge(float64(need.Count), "needs_you", "What waits for a person, by kind.", "kind", string(need.Kind))
	}
	gauge(now.Cost.USD, "run_cost_usd", "What agents of the present run have cost.")
	gauge(float64(now.Cost.Tokens), "run_cost_tokens", "Tokens that agents of the present run have used.")
	gauge(now.Cost.BudgetUSD, "run_budget_usd", "What the present run may cost; 0: no limit.")
}
