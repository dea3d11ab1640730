package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/sqlstore"
)

// These constants set the load on the server.
const (
	streamClients  = 100 // clients in the measurement of latency
	costClients    = 200 // clients in the measurement of processor time
	streamEvents   = 300
	stateGrants    = 10_000
	latencyLimit   = 50.0 // milliseconds
	stateLimit     = 50.0
	costPerEvent   = 50.0 // microseconds of processor time
	eventPause     = 5 * time.Millisecond
	waitForClients = time.Minute
)

// A station is the program that runs as the server of a codebase, in its own process.
type station struct {
	*works
	server  *exec.Cmd
	address string
	token   string
	locks   *lock.Manager // a lock manager on the store of the server
}

func newStation(b *bench, name string) *station {
	s := &station{works: newWorks(b, name)}
	check(os.MkdirAll(s.root, 0o700))
	s.call("init")
	said, _ := s.call("token", "add", "bench", "--role", "viewer")
	s.token = strings.TrimSpace(said)
	s.server = s.command("serve")
	out := get(s.server.StdoutPipe())
	check(s.server.Start())
	b.cleanup(func() error { return errors.Join(s.server.Process.Signal(os.Interrupt), s.server.Wait()) })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		check(fmt.Errorf("the server did not print its address: %w", err))
	}
	s.address = strings.TrimSpace(address)
	marker := get(durable.ReadJSON[struct{ Space string }](filepath.Join(s.root, ".lockkeeper", "space.json")))
	store := get(sqlstore.OpenSQLite(b.ctx, filepath.Join(s.root, ".lockkeeper", "state.db"), marker.Space, sqlstore.Options{}))
	b.cleanup(store.Close)
	s.locks = b.manager(store, lock.Options{})
	return s
}

func (s *station) request(ctx context.Context, path string) *http.Response {
	r := get(http.NewRequestWithContext(ctx, http.MethodGet, s.address+path, nil))
	r.Header.Set("Authorization", "Bearer "+s.token)
	got := get(http.DefaultClient.Do(r))
	if got.StatusCode != http.StatusOK {
		check(errors.Join(fmt.Errorf("%s: %s", path, got.Status), got.Body.Close()))
	}
	return got
}

// cpu returns the processor time that the server has used.
func (s *station) cpu() time.Duration {
	stat := get(os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.server.Process.Pid), "stat")))
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	user, system := get(strconv.Atoi(fields[11])), get(strconv.Atoi(fields[12]))
	const tick = 10 * time.Millisecond // the unit of these fields on Linux
	return time.Duration(user+system) * tick
}

// An audience is a group of clients that follow the events.
type audience struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	took  []float64          // milliseconds from before an event was stored until a client had it
	began map[string]float64 // time before an event was stored, by its number
	seen  map[string]int
	all   chan struct{} // receives once for each event that all clients have seen
	err   error
}

// follow connects clients to the events.
func (s *station) follow(clients int) *audience {
	ctx, stop := context.WithCancel(s.ctx)
	c := &audience{stop: stop, began: map[string]float64{}, seen: map[string]int{}, all: make(chan struct{}, streamEvents)}
	s.cleanup(func() error { c.end(); return nil })
	for range clients {
		body := s.request(ctx, "/events").Body
		lines := bufio.NewReader(body)
		for get(lines.ReadString('\n')) != "\n" { // reads until the stream begins
		}
		c.done.Go(func() {
			defer body.Close()
			if err := c.read(lines, clients); ctx.Err() == nil {
				c.mu.Lock()
				c.err = errors.Join(c.err, err)
				c.mu.Unlock()
				close(c.all)
			}
		})
	}
	return c
}

func (c *audience) read(lines *bufio.Reader, clients int) error {
	id := ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if number, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(number)
		}
		if line != "\n" || id == "" {
			continue
		}
		now := milliseconds()
		c.mu.Lock()
		c.took = append(c.took, now-c.began[id])
		if c.seen[id]++; c.seen[id] == clients {
			c.all <- struct{}{}
		}
		c.mu.Unlock()
		id = ""
	}
}

func (c *audience) end() {
	c.stop()
	c.done.Wait()
}

func milliseconds() float64 { return float64(monotonic()) / 1e6 }

// tell stores events. It stores the next one when all clients have seen the last one.
func (c *audience) tell(s *station) {
	next := uint64(1)
	if latest := get(s.locks.Events(s.ctx, store.EventQuery{Latest: true, Limit: 1})); len(latest) > 0 {
		next = latest[0].Seq + 1
	}
	for range streamEvents {
		id := strconv.FormatUint(next, 10)
		c.mu.Lock()
		c.began[id] = milliseconds()
		c.mu.Unlock()
		get(s.locks.Note(s.ctx, "", lockkeeper.Event{Kind: lockkeeper.EventDecided, Actor: lockkeeper.Actor{Name: "bench", Kind: lockkeeper.ActorPerson}, Reason: "item blog/posts/i3 will be done"}))
		next++
		select {
		case _, whole := <-c.all:
			if !whole {
				check(c.err)
			}
		case <-time.After(waitForClients):
			check(errors.New("not all clients got an event within a minute"))
		case <-s.ctx.Done():
			check(s.ctx.Err())
		}
		time.Sleep(eventPause)
	}
}

// httpStream measures how long an event takes to reach all clients, and what that costs the
// server.
func httpStream(b *bench) []row {
	s := newStation(b, "stream")
	few := s.follow(streamClients)
	few.tell(s)
	few.end()
	many := s.follow(costClients)
	before := s.cpu()
	many.tell(s)
	after := s.cpu()
	each := float64((after - before).Microseconds()) / (streamEvents * costClients)
	took := median(few.took)
	return []row{
		row{What: fmt.Sprintf("event to client, %d clients", streamClients), Ours: fmt.Sprintf("%.1f ms", took), Peer: "–",
			How: fmt.Sprintf("Another process than the server stores an event. The time is from just before that until a client has received all of the event. The figure is the median over %d events and all clients.", streamEvents)}.atMost(took, latencyLimit, "%.1f ms"),
		row{What: fmt.Sprintf("processor time for each delivered event, %d clients", costClients), Ours: fmt.Sprintf("%.1f µs", each), Peer: "–",
			How: fmt.Sprintf("This is the user and system time of the server over %d events, one every few milliseconds, divided by events and clients.", streamEvents)}.atMost(each, costPerEvent, "%.1f µs"),
	}
}

// httpState measures the state of many grants as one answer.
func httpState(b *bench) []row {
	s := newStation(b, "state")
	const step = 1_000
	for first := 0; first < stateGrants; first += step {
		check(s.locks.Update(b.ctx, func(a *lock.Tx) error {
			for i := first; i < first+step; i++ {
				path := fmt.Sprintf("app/models/m%05d.rb", i)
				_, blocked, err := a.Try(lockkeeper.Request{Holder: fmt.Sprintf("otter-%d", i), Policy: "person", Locks: writes(path)})
				if err != nil || len(blocked) > 0 {
					return errors.Join(err, fmt.Errorf("%s: %d blockers", path, len(blocked)))
				}
			}
			return nil
		}))
	}
	var took []float64
	size, times := 0, max(9, b.rounds*slicesPerRound)
	before := s.cpu()
	for range times {
		began := milliseconds()
		got := s.request(b.ctx, "/state")
		text := get(io.ReadAll(got.Body))
		check(got.Body.Close())
		took = append(took, milliseconds()-began)
		size = len(text)
		var state struct {
			Locks struct {
				Grants []json.RawMessage `json:"active_grants"`
			} `json:"locks"`
		}
		check(json.Unmarshal(text, &state))
		if n := len(state.Locks.Grants); n != stateGrants {
			check(fmt.Errorf("%d grants in the state", n))
		}
	}
	after := s.cpu()
	is, cpu := median(took), float64((after-before).Milliseconds())/float64(times)
	return []row{row{What: "state of 10,000 grants as JSON", Ours: fmt.Sprintf("%.1f ms", is), Peer: "–",
		How: fmt.Sprintf("Another process sends GET /state and reads all %.1f MB. The response takes %.0f ms of the server's processor time.", float64(size)/1e6, cpu)}.atMost(is, stateLimit, "%.1f ms")}
}
