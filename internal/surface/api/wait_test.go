package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/surface/access"
	"lockkeeper/sched"
)

// hung is how long a test waits for a state before it fails. It only ends hangs.
const hung = 5 * time.Minute

// inLine waits until want requests are in the wait list.
func (s *scene) inLine(want int) {
	s.t.Helper()
	for deadline := time.Now().Add(hung); ; {
		entries, err := s.App.Locks.Requests(s.t.Context())
		must(s.t, err)
		n := 0
		for _, e := range entries {
			if e.State == "waiting" {
				n++
			}
		}
		if n == want {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d wait, not %d", n, want)
		}
	}
}

// A waiting client gets the locks when they are free. A client that disconnects leaves the wait
// list. All waits end with the server.
func TestWaitingForLocks(t *testing.T) {
	s := newScene(t)
	g := s.taken(access.Operator, "app/x.rb")
	wanted := map[string]any{"write": []string{"app/x.rb"}, "wait_seconds": 600}
	type result struct {
		a   answer
		err error
	}
	ask := func(ctx context.Context) <-chan result {
		came := make(chan result, 1)
		go func() {
			a, err := s.try("POST", "/api/v1/grants", wanted, header("Authorization", "Bearer "+s.tokens[access.Agent]), func(r *http.Request) { *r = *r.WithContext(ctx) })
			came <- result{a, err}
		}()
		return came
	}
	got := ask(t.Context())
	s.inLine(1)
	leaving, leave := context.WithCancel(t.Context())
	left := ask(leaving)
	s.inLine(2)
	leave()
	if r := <-left; r.err == nil {
		t.Errorf("%d %s", r.a.status, r.a.body)
	}
	s.inLine(1)
	s.as(access.Operator, "POST", "/api/v1/grants/"+g.ID+"/release", map[string]any{"token": g.Token}).want(ok)
	r := <-got
	must(t, r.err)
	r.a.want(ok).has(`"holder":"the-agent"`)

	end := ask(t.Context())
	s.inLine(1)
	s.restart()
	r = <-end // the wait got a response before the connection closed
	must(t, r.err)
	r.a.want(http.StatusServiceUnavailable, codeBusy).has("no lock was acquired")
	s.inLine(0)
	entries, err := s.App.Locks.Requests(t.Context())
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("%+v", entries)
	}
}

// Counters cover the time since the server started. Gauges show the current state.
func TestMetrics(t *testing.T) {
	s := newScene(t)
	g := s.taken(access.Agent, "app/x.rb")
	s.as(access.Agent, "POST", "/api/v1/write", map[string]any{"grant": g.ID, "token": g.Token, "changes": []map[string]any{{"path": "app/y.rb", "text": "x"}}}).want(http.StatusConflict)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.try("POST", "/api/v1/grants", map[string]any{"write": []string{"app/x.rb"}, "wait_seconds": 600}, header("Authorization", "Bearer "+s.tokens[access.Agent]))
	}()
	s.inLine(1)
	l := s.listen()
	s.as(access.Agent, "POST", "/api/v1/grants/"+g.ID+"/release", map[string]any{"token": g.Token}).want(ok)
	<-done
	l.next()
	q, err := job.Open(s.App)
	must(t, err)
	_, err = q.Enqueue(t.Context(), sched.ItemSpec{Workflow: "lint", Job: true, Command: []string{"true"}, By: lockkeeper.Actor{Name: "ann", Kind: lockkeeper.ActorPerson}})
	must(t, err)
	job, err := q.Dispatch(t.Context(), lockkeeper.Worker{ID: "here/1", Node: "here"})
	must(t, err)
	defer func() { must(t, job.Return(t.Context(), "the test is over")) }()
	want := []string{`lockkeeper_events_total{kind="gap"} 1`, `lockkeeper_events_total{kind="waiting"} 1`, `lockkeeper_lock_wait_seconds_count 1`, `lockkeeper_grants{state="held"} 2`, `lockkeeper_sse_clients 1`,
		`lockkeeper_queue_items{stage="ready"} 0`, `lockkeeper_slots_limit{pool="claude"} 12`, `lockkeeper_run_cost_usd 0`, `lockkeeper_http_requests_total{route="POST /api/v1/write",status="409"} 1`, "go_goroutines", "lockkeeper_dispatch_latency_seconds_count 1"}
	for deadline := time.Now().Add(hung); ; { // counters follow the log with a short delay
		a := s.as(access.Viewer, "GET", "/metrics", nil).want(ok)
		missing := ""
		for _, line := range want {
			if !strings.Contains(string(a.body), line) {
				missing = line
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s in\n%s", missing, a.body)
		}
	}
}

// The webhook is retried until it succeeds. It says how many decisions are open and where, without their
// content. It is called again when more are open.
func TestWebhook(t *testing.T) {
	type call struct {
		news needed
		text string
	}
	calls := make(chan call, 100)
	status := []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusNoContent}
	hook := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c call
		var raw json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&raw); err != nil || json.Unmarshal(raw, &c.news) != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v", err)
		}
		c.text = string(raw)
		w.WriteHeader(status[0])
		if len(status) > 1 {
			status = status[1:]
		}
		calls <- c
	})}
	at := listenAt(t, hook)
	s := newScene(t)
	s.audited("blog/posts", "Fix <it>", "Polish it")
	h := newWebhook(s.server, "http://"+at+"/secret-path")
	h.pause, h.every, h.retry = time.Millisecond, time.Millisecond, time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.follow(ctx, s.server.feed)
	}()
	defer func() { cancel(); <-done }()
	for range 3 {
		c := <-calls
		if c.news.Total != 2 || c.news.Kinds["item"] != 2 || c.news.Address != s.server.Address() || c.news.Root != "blog" || !strings.Contains(c.news.Text, "open decisions in blog: 2 (2 item)") || strings.Contains(c.text, "Fix") {
			t.Errorf("%s", c.text)
		}
	}
	s.audited("blog/comments", "Fix more")
	s.note(1) // in a run, the write itself causes an event
	if c := <-calls; c.news.Total != 3 {
		t.Errorf("%s", c.text)
	}
}

// listenAt serves on loopback until the test ends and returns the address.
func listenAt(t *testing.T, server *http.Server) string {
	t.Helper()
	var config Options
	config.Listen = "127.0.0.1:0"
	config.Limits.fill()
	l, err := listen(t.Context(), &config)
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l)
	}()
	t.Cleanup(func() {
		must(t, server.Close())
		<-done
	})
	return l.Addr().String()
}
