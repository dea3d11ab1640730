package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/surface/access"
)

// told is one received event of a stream.
type told struct {
	id, kind, data string
	comment        bool
}

// A listener reads the stream as a browser does.
type listener struct {
	t      testing.TB
	cancel context.CancelFunc
	events chan told // closed when the stream ends
	status int
}

// listen opens the stream. Each change modifies the request.
func (s *scene) listen(change ...func(*http.Request)) *listener {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", s.server.Address()+"/events", nil)
	must(s.t, err)
	r.Header.Set("Authorization", "Bearer "+s.tokens[access.Viewer])
	for _, c := range change {
		c(r)
	}
	got, err := s.client.Do(r)
	must(s.t, err)
	l := &listener{t: s.t, cancel: cancel, events: make(chan told, 10_000), status: got.StatusCode}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(l.events)
		defer got.Body.Close()
		lines := bufio.NewScanner(got.Body)
		lines.Buffer(nil, 8<<20)
		var ev told
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				ev.id = value
			case "event":
				ev.kind = value
			case "data":
				ev.data = value
			case "":
				if strings.HasPrefix(lines.Text(), ":") {
					ev.comment = true
					continue
				}
				l.events <- ev
				ev = told{}
			}
		}
	}()
	s.t.Cleanup(func() { cancel(); <-done })
	return l
}

// next returns the next event, and skips heartbeats.
func (l *listener) next() told {
	l.t.Helper()
	for {
		select {
		case ev, open := <-l.events:
			if !open {
				l.t.Fatal("the stream ended")
			}
			if ev.kind != "" {
				return ev
			}
		case <-time.After(hung):
			l.t.Fatal("nothing came")
		}
	}
}

// ended waits for the end of the stream.
func (l *listener) ended() {
	l.t.Helper()
	for {
		select {
		case _, open := <-l.events:
			if !open {
				return
			}
		case <-time.After(hung):
			l.t.Fatal("it goes on")
		}
	}
}

func after(seq uint64) func(*http.Request) {
	return func(r *http.Request) { r.URL.RawQuery = fmt.Sprintf("after=%d", seq) }
}

// note appends n events to the log.
func (s *scene) note(n int) {
	s.t.Helper()
	for range n {
		_, err := s.App.Locks.Note(s.t.Context(), "", lockkeeper.Event{Kind: lockkeeper.EventDecided, Actor: lockkeeper.Actor{Name: "ann", Kind: lockkeeper.ActorPerson}, Reason: "so"})
		must(s.t, err)
	}
}

func (s *scene) last() uint64 {
	s.t.Helper()
	seq, err := s.server.latest(s.t.Context())
	must(s.t, err)
	return seq
}

// With state=true the stream has the whole state, at first and after each change.
//
// shows: SW-69 SW-84 PL-79 PL-94
func TestStreamOfStates(t *testing.T) {
	s := newScene(t)
	l := s.listen(func(r *http.Request) { r.URL.RawQuery = "state=true" })
	read := func() (held []string) {
		got := l.next()
		var st struct {
			Phase       string         `json:"phase"`
			Controllers []any          `json:"controllers"`
			Workflows   map[string]any `json:"workflows"`
			Seq         uint64         `json:"seq"`
			Locks       struct {
				Grants []lockkeeper.GrantSnapshot `json:"active_grants"`
				Depth  *int                       `json:"queue_depth"`
				Items  []any                      `json:"active_items"`
			} `json:"locks"`
		}
		must(t, json.Unmarshal([]byte(got.data), &st))
		if got.kind != "state" || got.id != fmt.Sprint(st.Seq) || st.Phase == "" || st.Controllers == nil || st.Workflows == nil || st.Locks.Depth == nil || st.Locks.Items == nil {
			t.Errorf("%+v", got)
		}
		for _, g := range st.Locks.Grants {
			held = append(held, g.WritePaths...)
		}
		return held
	}
	if held := read(); held != nil {
		t.Errorf("held at first: %q", held)
	}
	g := s.taken(access.Agent, "app/models/post.rb")
	for fmt.Sprint(read()) != "[app/models/post.rb]" { // a state between two events of one command
	}
	s.as(access.Agent, "POST", "/api/v1/grants/"+g.ID+"/release", map[string]any{"token": g.Token}).want(ok)
	for read() != nil {
	}
}

// A client receives every event once and in order: new events, events since a given number, and events across a
// restart of the server.
//
// shows: SW-84
func TestStreamOfEvents(t *testing.T) {
	s := newScene(t)
	s.note(3)
	first := s.last()
	now := s.listen()
	begin := <-now.events
	if begin.id != fmt.Sprint(first) || begin.kind != "" {
		t.Errorf("it begins with %+v", begin)
	}
	g := s.taken(access.Agent, "app/models/post.rb")
	got := now.next()
	var ev lockkeeper.Event
	must(t, json.Unmarshal([]byte(got.data), &ev))
	if got.kind != "acquired" || ev.GrantID != g.ID || got.id != fmt.Sprint(ev.Seq) || ev.Holder != "the-agent" || strings.Contains(got.data, g.Token) {
		t.Errorf("%+v", got)
	}
	since := s.listen(after(first - 2))
	for want := first - 1; want <= ev.Seq; want++ {
		if got := since.next(); got.id != fmt.Sprint(want) {
			t.Errorf("%s instead of %d", got.id, want)
		}
	}
	back := s.listen(header("Last-Event-ID", fmt.Sprint(first)), after(1)) // a browser that reconnects uses its original URL
	if got := back.next(); got.id != fmt.Sprint(first+1) {
		t.Errorf("%+v", got)
	}
	s.restart()
	now.ended()
	s.note(2)
	again := s.listen(header("Last-Event-ID", fmt.Sprint(ev.Seq)))
	for want := ev.Seq + 1; want <= ev.Seq+2; want++ {
		if got := again.next(); got.id != fmt.Sprint(want) {
			t.Errorf("%s instead of %d", got.id, want)
		}
	}
}

// The stream reports events that the log has pruned, and a position that belongs to another log.
func TestGapsInTheStream(t *testing.T) {
	s := newScene(t)
	s.note(500)
	last := s.last()
	must(t, s.App.Locks.Update(t.Context(), pruneTo(100)))
	s.restart() // the new server's feed has not seen them
	old := s.listen(after(5))
	gap := old.next()
	var f forgotten
	must(t, json.Unmarshal([]byte(gap.data), &f))
	if gap.kind != "gap" || f.From != 6 || f.To < last-200 || f.To >= last || gap.id != fmt.Sprint(f.To) {
		t.Errorf("%+v", gap)
	}
	for want := f.To + 1; want <= last; want++ {
		if got := old.next(); got.id != fmt.Sprint(want) || got.kind == "gap" {
			t.Fatalf("%+v instead of %d", got, want)
		}
	}
	other := s.listen(after(last + 1_000))
	gap = other.next()
	must(t, json.Unmarshal([]byte(gap.data), &f))
	if gap.kind != "gap" || gap.id != fmt.Sprint(last) || f.To != last+1_000 {
		t.Errorf("%+v", gap)
	}
	s.note(1)
	if got := other.next(); got.id != fmt.Sprint(last+1) {
		t.Errorf("%+v", got)
	}
	for _, wrong := range []func(*http.Request){header("Last-Event-ID", "x"), header("Last-Event-ID", "-1"), func(r *http.Request) { r.URL.RawQuery = "after=x" }, func(r *http.Request) { r.URL.RawQuery = "since=1" }} {
		s.as(access.Viewer, "GET", "/events", nil, wrong).want(http.StatusBadRequest, "input")
	}
}

// A stream sends heartbeats, and ends when the client's account is removed.
func TestStreamsEndWithTheirPerson(t *testing.T) {
	s := newScene(t, func(o *Options) { o.Limits = Limits{Heartbeat: 30 * time.Millisecond, Streams: 2} })
	token, err := s.People.Add(t.Context(), "guest", access.Viewer)
	must(t, err)
	l := s.listen(header("Authorization", "Bearer "+token))
	<-l.events
	if alive := <-l.events; !alive.comment {
		t.Errorf("%+v", alive)
	}
	s.listen()
	a := s.as(access.Viewer, "GET", "/events", nil).want(http.StatusServiceUnavailable, codeBusy)
	if a.header.Get("Retry-After") == "" {
		t.Error("no response says when to retry")
	}
	must(t, s.People.Revoke("guest"))
	stop := make(chan struct{})
	noted := make(chan struct{})
	go func() { // a stream with constant traffic must end, too
		defer close(noted)
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := s.App.Locks.Note(t.Context(), "", lockkeeper.Event{Kind: lockkeeper.EventDecided}); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	l.ended()
	close(stop)
	<-noted
	s.as(access.Viewer, "HEAD", "/events", nil).want(ok)
}

// The server rechecks a client's permission on time, even if events keep arriving just before each check. A
// stream ends with the session that opened it.
func TestNobodyListensForLong(t *testing.T) {
	const beat = 2 * time.Second
	var ahead atomic.Int64
	s := newScene(t, func(o *Options) {
		o.Limits = Limits{Heartbeat: beat}
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	session := s.login(s.member("ann", access.Admin))
	followed := s.listen(session, func(r *http.Request) { r.Header.Del("Authorization") })
	token, err := s.People.Add(t.Context(), "guest", access.Viewer)
	must(t, err)
	l := s.listen(header("Authorization", "Bearer "+token))
	<-l.events
	must(t, s.People.Revoke("guest"))
	removed := time.Now()
	var heard []time.Time
	again := time.NewTicker(beat * 3 / 5)
	defer again.Stop()
	for open := true; open; {
		select {
		case <-again.C:
			s.note(1)
		case ev, more := <-l.events:
			if open = more; ev.kind != "" {
				heard = append(heard, time.Now())
			}
		}
	}
	if last := heard[len(heard)-1].Sub(removed); last > 5*beat { // a busy machine can be late to check
		t.Errorf("they heard of something %s after they were removed", last)
	}
	ahead.Store(int64(8 * 24 * time.Hour))
	followed.ended()
}

// A thousand clients that do not read use little memory, delay no other client, and are disconnected after a
// while.
func TestSlowClients(t *testing.T) {
	const crowd = 1_000
	s := newScene(t, func(o *Options) { o.Limits = Limits{StreamWrite: time.Second, Heartbeat: time.Second} })
	before := heap()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range crowd {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.server.Address(), "http://"))
		must(t, err)
		conns = append(conns, conn)
		must(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
		fmt.Fprintf(conn, "GET /events?after=0 HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", conn.RemoteAddr(), s.tokens[access.Viewer])
	}
	for s.server.rooms[roomStreams].taken() < crowd {
		time.Sleep(time.Millisecond)
	}
	l := s.listen()
	long := strings.Repeat("a path that is long ", 400) // 8 KB each, to fill the kernel's buffers soon
	var most atomic.Uint64
	var slowest time.Duration
	for range 150 {
		began := time.Now()
		_, err := s.App.Locks.Note(t.Context(), "", lockkeeper.Event{Kind: lockkeeper.EventDecided, Reason: long})
		must(t, err)
		l.next()
		slowest = max(slowest, time.Since(began))
		most.Store(max(most.Load(), heap()))
	}
	grown := int64(most.Load()) - int64(before)
	t.Logf("%d slow clients: %d MB more at most, slowest event to a quick client %s", crowd, grown>>20, slowest)
	if grown > 150<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
	if slowest > time.Minute { // each slow client may take a second: served one after the other, they would take longer
		t.Errorf("an event took %s to a quick client", slowest)
	}
	s.as(access.Viewer, "GET", "/api/v1/me", nil).want(ok)
	for deadline := time.Now().Add(hung); s.server.rooms[roomStreams].taken() > 1; {
		if time.Now().After(deadline) {
			t.Fatalf("%d are still there", s.server.rooms[roomStreams].taken())
		}
		time.Sleep(20 * time.Millisecond) // the end of a stream causes no event to wait for
	}
}

// heap returns the allocated heap bytes, including garbage that is not yet collected.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// With many concurrent clients, each receives every event.
func TestManyFollow(t *testing.T) {
	s := newScene(t)
	first := s.last()
	var wg sync.WaitGroup
	for range 50 {
		l := s.listen(after(first))
		wg.Go(func() {
			for want := first + 1; want <= first+200; want++ {
				if got := l.next(); got.id != fmt.Sprint(want) {
					t.Errorf("%s instead of %d", got.id, want)
					return
				}
			}
		})
	}
	s.note(200)
	wg.Wait()
}
