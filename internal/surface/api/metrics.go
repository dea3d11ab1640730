package api

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lockkeeper"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/sched"
)

// metrics holds the counters of a server. They start at zero with the server and follow the event log. Gauges
// are read from the store at each scrape.
type metrics struct {
	registry *prometheus.Registry

	events    *prometheus.CounterVec
	lockWait  prometheus.Histogram
	dispatch  prometheus.Histogram
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	sent      prometheus.Counter

	waiting map[string]time.Time // start of the wait by grant or item id; used only by follow
}

// waitingKept limits the number of waits that metrics tracks.
const waitingKept = 50_000

func newMetrics(s *Server) *metrics {
	waits := []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 900, 3600}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		events:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "lockkeeper_events_total", Help: "Events of the log by kind, since the server started. A gap is a write that the gate refused; recovered is a lock of a dead holder."}, []string{"kind"}),
		lockWait: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "lockkeeper_lock_wait_seconds", Help: "How long lock requests waited before they were granted.", Buckets: waits}),
		dispatch: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "lockkeeper_dispatch_latency_seconds", Help: "Time from queueing an item to its dispatch.", Buckets: waits}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "lockkeeper_http_requests_total", Help: "Requests by route and status."}, []string{"route", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "lockkeeper_http_request_duration_seconds", Help: "Duration of requests by route.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 60}}, []string{"route"}),
		sent:    prometheus.NewCounter(prometheus.CounterOpts{Name: "lockkeeper_sse_events_total", Help: "Events sent to clients."}),
		waiting: map[string]time.Time{},
	}
	m.registry.MustRegister(m.events, m.lockWait, m.dispatch, m.requests, m.durations, m.sent,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &stock{s: s})
	return m
}

func (m *metrics) answered(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.durations.WithLabelValues(route).Observe(took.Seconds())
}

// follow counts events until the feed is closed.
func (m *metrics) follow(ctx context.Context, f *feed.Feed, trouble func(error)) {
	for after := f.Last(); ; {
		events, err := f.Next(ctx, after)
		if errors.Is(err, feed.ErrClosed) || ctx.Err() != nil {
			return
		}
		if err != nil { // a store error: the feed continues when the store is back
			trouble(err)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			continue
		}
		for i := range events {
			m.count(&events[i])
			after = events[i].Seq
		}
	}
}

func (m *metrics) count(ev *lockkeeper.Event) {
	m.events.WithLabelValues(string(ev.Kind)).Inc()
	item := sched.ItemID(*ev)
	switch ev.Kind {
	case lockkeeper.EventWaiting:
		m.began(ev.GrantID, ev.At)
	case lockkeeper.EventQueued, lockkeeper.EventRequeued:
		m.began(item, ev.At)
	case lockkeeper.EventAcquired:
		m.ended(ev.GrantID, ev.At, m.lockWait)
		m.ended(item, ev.At, m.dispatch)
	case lockkeeper.EventWithdrawn, lockkeeper.EventTimedOut, lockkeeper.EventFailed:
		delete(m.waiting, ev.GrantID)
		delete(m.waiting, item)
	}
}

// began records when a grant or an item started to wait. Later calls for the same id change nothing.
func (m *metrics) began(id string, at time.Time) {
	if _, known := m.waiting[id]; id != "" && !known && len(m.waiting) < waitingKept {
		m.waiting[id] = at
	}
}

func (m *metrics) ended(id string, at time.Time, waits prometheus.Histogram) {
	if began, known := m.waiting[id]; known {
		waits.Observe(max(0, at.Sub(began).Seconds()))
		delete(m.waiting, id)
	}
}

func (s *Server) serveMetrics(c *call) error {
	promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(c.w, c.r)
	return nil
}

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
		gauge(float64(slots.Taken), "slots_taken", "Slots in use, by pool.", "pool", slots.Pool)
		gauge(float64(slots.Limit), "slots_limit", "Slots in all, by pool.", "pool", slots.Pool)
	}
	for _, need := range now.Needs.Kinds {
		gauge(float64(need.Count), "needs_you", "Open decisions, by kind.", "kind", string(need.Kind))
	}
	gauge(now.Cost.USD, "run_cost_usd", "Cost of the agents of the current run.")
	gauge(float64(now.Cost.Tokens), "run_cost_tokens", "Tokens used by the agents of the current run.")
	gauge(now.Cost.BudgetUSD, "run_budget_usd", "Budget of the current run; 0: no limit.")
}
