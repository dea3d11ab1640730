package api

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"lockkeeper"
	"lockkeeper/internal/encoding/promtext"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/sched"
)

// metrics holds the counters of a server. They start at zero with the server and follow the event log. Gauges
// are read from the store at each scrape.
type metrics struct {
	events    *promtext.Counter
	lockWait  *promtext.Histogram
	dispatch  *promtext.Histogram
	requests  *promtext.Counter
	durations *promtext.Histogram
	sent      *promtext.Counter

	waiting map[string]time.Time // start of the wait by grant or item id; used only by follow
}

// waitingKept limits the number of waits that metrics tracks.
const waitingKept = 50_000

func newMetrics() *metrics {
	waits := []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 900, 3600}
	return &metrics{
		events:   promtext.NewCounter("lockkeeper_events_total", "Events of the log by kind, since the server started. A gap is a write that the gate refused; recovered is a lock of a dead holder.", "kind"),
		lockWait: promtext.NewHistogram("lockkeeper_lock_wait_seconds", "How long lock requests waited before they were granted.", waits),
		dispatch: promtext.NewHistogram("lockkeeper_dispatch_latency_seconds", "Time from queueing an item to its dispatch.", waits),
		requests: promtext.NewCounter("lockkeeper_http_requests_total", "Requests by route and status.", "route", "status"),
		durations: promtext.NewHistogram("lockkeeper_http_request_duration_seconds", "Duration of requests by route.",
			[]float64{.001, .005, .01, .05, .1, .5, 1, 5, 60}, "route"),
		sent:    promtext.NewCounter("lockkeeper_sse_events_total", "Events sent to clients."),
		waiting: map[string]time.Time{},
	}
}

func (m *metrics) answered(route string, status int, took time.Duration) {
	m.requests.Add(1, route, strconv.Itoa(status))
	m.durations.Observe(took.Seconds(), route)
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
	m.events.Add(1, string(ev.Kind))
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

func (m *metrics) ended(id string, at time.Time, waits *promtext.Histogram) {
	if began, known := m.waiting[id]; known {
		waits.Observe(max(0, at.Sub(began).Seconds()))
		delete(m.waiting, id)
	}
}

// scrapeTime limits how long a scrape may read the store.
const scrapeTime = 5 * time.Second

func (s *Server) serveMetrics(c *call) error {
	p, m := promtext.NewPage(), s.metrics
	p.Include(m.events, m.lockWait, m.dispatch, m.requests, m.durations, m.sent)
	ctx, cancel := context.WithTimeout(c.r.Context(), scrapeTime)
	defer cancel()
	if err := errors.Join(s.addGauges(ctx, p), addProcess(p)); err != nil { // the metrics that could be read are served
		s.opt.Log.Warn("not all metrics could be read", "error", err)
	}
	c.w.Header().Set("Content-Type", promtext.ContentType)
	_, _ = p.WriteTo(c.w) // fails only if the client has disconnected
	return nil
}

// addGauges adds the state of the codebase. With an error, the page has a part of it.
func (s *Server) addGauges(ctx context.Context, p *promtext.Page) error {
	gauge := func(value float64, name, help string, labels ...string) {
		p.Gauge(value, "lockkeeper_"+name, help, labels...)
	}
	gauge(float64(s.rooms[roomStreams].taken()), "sse_clients", "Clients that follow the events.")
	entries, err := s.opt.App.Locks.Requests(ctx)
	if err != nil {
		return err
	}
	states := map[string]int{"held": 0, "waiting": 0}
	for _, e := range entries {
		states[e.State]++
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		gauge(float64(states[state]), "grants", "Grants and waiting requests by state.", "state", state)
	}
	census, err := s.queue.Census(ctx)
	if err != nil {
		return err
	}
	for _, of := range []struct {
		stage string
		count int
	}{{"failed", census.Failed}, {"parked", census.Waiting}, {"ready", census.Ready}, {"running", census.Running}} {
		gauge(float64(of.count), "queue_items", "Items of the queue by stage.", "stage", of.stage)
	}
	now, err := s.opt.View.Now(ctx, 0)
	if err != nil {
		return err
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
	return nil
}
