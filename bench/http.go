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

// The load on the server.
const (
	streamClients  = 100 // whose latency is measured
	costClients    = 200 // whose processor time is measured
	streamEvents   = 300
	stateGrants    = 10_000
	latencyLimit   = 50.0 // milliseconds
	stateLimit     = 50.0
	costPerEvent   = 50.0 // microseconds of processor time
	eventPause     = 5 * time.Millisecond
	waitForClients = time.Minute
)

// station is the program as a server of a codebase of its own, in its own process.
type station struct {
	*works
	server  *exec.Cmd
	address string
	token   string
	store   store.Store // the same store, for clients beside the server
	locks   *lock.Manager
}

func newStation(ctx context.Context, b *bench, name string) (_ *station, err error) {
	w, err := newWorks(ctx, b, name)
	if err != nil {
		return nil, err
	}
	s := &station{works: w}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.MkdirAll(w.root, 0o700); err != nil {
		return nil, err
	}
	if _, _, err := w.call("init"); err != nil {
		return nil, err
	}
	said, _, err := w.call("token", "add", "bench", "--role", "viewer")
	if err != nil {
		return nil, err
	}
	s.token = strings.TrimSpace(said)
	s.server = exec.CommandContext(ctx, w.program, "serve")
	s.server.Dir, s.server.Env = w.root, w.env
	out, err := s.server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.server.Start(); err != nil {
		return nil, err
	}
	if s.address, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the server does not say where it is: %w", err)
	}
	s.address = strings.TrimSpace(s.address)
	marker, err := durable.ReadJSON[struct{ Space string }](filepath.Join(w.root, ".lockkeeper", "space.json"))
	if err != nil {
		return nil, err
	}
	if s.store, err = sqlstore.OpenSQLite(ctx, filepath.Join(w.root, ".lockkeeper", "state.db"), marker.Space, sqlstore.Options{}); err != nil {
		return nil, err
	}
	s.locks = lock.New(s.store, lock.Options{})
	return s, nil
}

func (s *station) close() (err error) {
	if s.locks != nil {
		err = errors.Join(s.locks.Close(), s.store.Close())
	}
	if s.server != nil && s.server.Process != nil {
		err = errors.Join(err, s.server.Process.Signal(os.Interrupt), s.server.Wait())
	}
	return err
}

func (s *station) request(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	got, err := http.DefaultClient.Do(r)
	if err == nil && got.StatusCode != http.StatusOK {
		err = errors.Join(fmt.Errorf("%s: %s", path, got.Status), got.Body.Close())
	}
	return got, err
}

// cpu is how much processor time the server has used.
func (s *station) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.server.Process.Pid), "stat"))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	const tick = 10 * time.Millisecond // as Linux counts it for programs
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// audience is clients that follow the events.
type audience struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	took  []float64          // milliseconds from before an event was stored to when a client had it
	began map[string]float64 // number of an event to when it was about to be stored
	seen  map[string]int
	all   chan struct{} // one for each event that all have seen
	err   error
}

// follow lets clients follow the events.
func (s *station) follow(ctx context.Context, clients int) (*audience, error) {
	ctx, stop := context.WithCancel(ctx)
	c := &audience{stop: stop, began: map[string]float64{}, seen: map[string]int{}, all: make(chan struct{}, streamEvents)}
	for range clients {
		got, err := s.request(ctx, "/events")
		if err != nil {
			c.end()
			return nil, err
		}
		lines := bufio.NewReader(got.Body)
		for line := ""; line != "\n"; { // where the stream begins
			if line, err = lines.ReadString('\n'); err != nil {
				c.end()
				return nil, errors.Join(err, got.Body.Close())
			}
		}
		c.done.Go(func() {
			defer got.Body.Close()
			if err := c.read(lines, clients); err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.err = errors.Join(c.err, err)
				c.mu.Unlock()
				close(c.all)
			}
		})
	}
	return c, nil
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

// tell stores events, one after the other, each when all have seen the one before.
func (c *audience) tell(ctx context.Context, s *station, events int) error {
	latest, err := s.locks.Events(ctx, store.EventQuery{Latest: true, Limit: 1})
	if err != nil {
		return err
	}
	next := uint64(1)
	if len(latest) > 0 {
		next = latest[0].Seq + 1
	}
	for range events {
		id := strconv.FormatUint(next, 10)
		c.mu.Lock()
		c.began[id] = milliseconds()
		c.mu.Unlock()
		if _, err := s.locks.Note(ctx, "", lockkeeper.Event{Kind: lockkeeper.EventDecided, Actor: lockkeeper.Actor{Name: "bench", Kind: lockkeeper.ActorPerson}, Reason: "item blog/posts/i3 will be done"}); err != nil {
			return err
		}
		next++
		select {
		case _, whole := <-c.all:
			if !whole {
				return c.err
			}
		case <-time.After(waitForClients):
			return errors.New("not all clients got an event within a minute")
		case <-ctx.Done():
			return ctx.Err()
		}
		time.Sleep(eventPause)
	}
	return nil
}

// httpStream measures how long an event takes to all who follow, and what that costs the
// server.
func httpStream(ctx context.Context, b *bench) (_ []row, err error) {
	s, err := newStation(ctx, b, "stream")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	few, err := s.follow(ctx, streamClients)
	if err != nil {
		return nil, err
	}
	err = few.tell(ctx, s, streamEvents)
	few.end()
	if err != nil {
		return nil, err
	}
	many, err := s.follow(ctx, costClients)
	if err != nil {
		return nil, err
	}
	defer many.end()
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	if err := many.tell(ctx, s, streamEvents); err != nil {
		return nil, err
	}
	after, err := s.cpu()
	if err != nil {
		return nil, err
	}
	each := float64((after - before).Microseconds()) / (streamEvents * costClients)
	took := median(few.took)
	return []row{
		row{What: fmt.Sprintf("event to client, %d clients", streamClients), Ours: fmt.Sprintf("%.1f ms", took), Peer: "–",
			How: fmt.Sprintf("From just before an event is stored, by another process than the server, to when a client has received all of it: median over %d events and all clients.", streamEvents)}.atMost(took, latencyLimit, "%.1f ms"),
		row{What: fmt.Sprintf("processor time for each delivered event, %d clients", costClients), Ours: fmt.Sprintf("%.1f µs", each), Peer: "–",
			How: fmt.Sprintf("User and system time of the server over %d events, one every few milliseconds, divided by events and clients.", streamEvents)}.atMost(each, costPerEvent, "%.1f µs"),
	}, nil
}

// httpState measures the state of many grants as one answer.
func httpState(ctx context.Context, b *bench) (_ []row, err error) {
	s, err := newStation(ctx, b, "state")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	const step = 1_000
	for first := 0; first < stateGrants; first += step {
		err := s.locks.Update(ctx, func(a *lock.Tx) error {
			for i := first; i < first+step; i++ {
				path := fmt.Sprintf("app/models/m%05d.rb", i)
				_, blocked, err := a.Try(lockkeeper.Request{Holder: fmt.Sprintf("otter-%d", i), Policy: "person",
					Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}}})
				if err != nil || len(blocked) > 0 {
					return errors.Join(err, fmt.Errorf("%s: %d blockers", path, len(blocked)))
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var took []float64
	size, times := 0, max(9, b.rounds*slicesPerRound)
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	for range times {
		began := milliseconds()
		got, err := s.request(ctx, "/state")
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(got.Body)
		if err := errors.Join(err, got.Body.Close()); err != nil {
			return nil, err
		}
		took = append(took, milliseconds()-began)
		size = len(text)
		var state struct {
			Locks struct {
				Grants []json.RawMessage `json:"active_grants"`
			} `json:"locks"`
		}
		if err := json.Unmarshal(text, &state); err != nil || len(state.Locks.Grants) != stateGrants {
			return nil, fmt.Errorf("%d grants in the state: %w", len(state.Locks.Grants), err)
		}
	}
	after, err := s.cpu()
	if err != nil {
		return nil, err
	}
	is, cpu := median(took), float64((after-before).Milliseconds())/float64(times)
	return []row{row{What: "state of 10,000 grants as JSON", Ours: fmt.Sprintf("%.1f ms", is), Peer: "–",
		How: fmt.Sprintf("GET /state from another process, to the last of %.1f MB; it takes %.0f ms of the server's processor time.", float64(size)/1e6, cpu)}.atMost(is, stateLimit, "%.1f ms")}, nil
}
