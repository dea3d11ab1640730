package lock_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
	"lockkeeper/store/storetest"
)

var rewrite = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts plays the scenarios in testdata. In a scenario, each step is one line. The
// indented lines below it show the result once every goroutine is blocked: the calls that
// returned with their results, the holders, and which request waits for which. -update rewrites
// the results.
//
//	a: try write x, read dir/        grant now, or blocked
//	a: wait 10s write x              wait for locks; policy and ttl may follow: "policy dal ttl 5s"
//	a: release | renew | upgrade x | extend write y
//	a: cancel                        cancel the waiting call
//	a: stop | resume                 the process of a waiter stops, and resumes
//	advance 5s                       let time pass
//	recover                          one pass of the reaper
//
// shows: SW-39 SW-45 SW-73 DL-19 GP-14 GP-15
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, string(want)) })
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s now reads:\n%s", file, got)
			}
		})
	}
}

// A stage runs the actors of one transcript.
type stage struct {
	*testing.T
	m       *lock.Manager
	store   *memstore.Store
	mu      sync.Mutex
	clients map[string]*client
	said    []string // results of calls since the last step
}

// A client is one actor of a transcript, with at most one grant.
type client struct {
	name   string
	grant  *lock.Grant
	cancel context.CancelFunc
	store  *process
}

// A process is the store as seen by the process of one client. While the process is stopped,
// none of its transactions begins.
type process struct {
	store.Store
	mu      sync.Mutex
	resumed chan struct{} // nil while it runs
	over    <-chan struct{}
}

func (p *process) Update(ctx context.Context, fn func(store.Tx) error) error {
	p.mu.Lock()
	resumed := p.resumed
	p.mu.Unlock()
	if resumed != nil {
		select {
		case <-resumed:
		case <-p.over:
		}
	}
	return p.Store.Update(ctx, fn)
}

func (p *process) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resumed = make(chan struct{})
}

func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.resumed)
	p.resumed = nil
}

func play(t *testing.T, script string) string {
	st := memstore.New("transcript", memstore.Options{})
	ctx, end := context.WithCancel(t.Context())
	s := &stage{T: t, m: lock.New(st, lock.Options{}), store: st, clients: map[string]*client{}}
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "  "):
			continue // output of the last run
		case line == "" || strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
			continue
		}
		fmt.Fprintln(&out, line)
		s.act(ctx, line)
		synctest.Wait()
		s.describe(&out)
	}
	end()
	synctest.Wait()
	if err := s.m.Close(); err != nil {
		t.Error(err)
	}
	return out.String()
}

// act runs a step, or starts it if it may block.
func (s *stage) act(ctx context.Context, line string) {
	words := strings.Fields(line)
	switch words[0] {
	case "advance":
		time.Sleep(s.duration(words[1]))
		return
	case "recover":
		if _, err := s.m.Recover(ctx); err != nil {
			s.Error(err)
		}
		return
	}
	name, what, ok := strings.Cut(line, ": ")
	if !ok {
		s.Fatalf("what does %q mean?", line)
	}
	c := s.clients[name]
	if c == nil {
		c = &client{name: name, store: &process{Store: s.store, over: ctx.Done()}}
		s.clients[name] = c
	}
	s.call(ctx, c, what)
}

// call starts one call of one client.
func (s *stage) call(ctx context.Context, c *client, what string) {
	verb, rest, _ := strings.Cut(what, " ")
	var id, token string
	if c.grant != nil {
		id, token = c.grant.ID, c.grant.Token
	}
	switch verb {
	case "try":
		req, _ := s.request(c, rest)
		go func() { s.answer(c, what)(s.m.TryAcquire(ctx, req)) }()
	case "wait":
		req, wait := s.request(c, rest)
		ctx, cancel := context.WithCancel(ctx)
		c.cancel = cancel
		m := lock.New(c.store, lock.Options{}) // simulates another process
		go func() { s.answer(c, what)(m.Acquire(ctx, req, wait)) }()
	case "cancel":
		c.cancel()
	case "stop":
		c.store.stop()
	case "resume":
		c.store.resume()
	case "release":
		go func() {
			released, err := s.m.Release(ctx, id, token)
			s.say(c, what, outcome(err, fmt.Sprint(released)))
		}()
	case "renew":
		go func() { _, err := s.m.Renew(ctx, id, token); s.say(c, what, outcome(err, "renewed")) }()
	case "upgrade":
		go func() { _, err := s.m.Upgrade(ctx, id, token, rest); s.say(c, what, outcome(err, "upgraded")) }()
	case "extend":
		req, _ := s.request(c, rest)
		go func() { _, err := s.m.Extend(ctx, id, token, req.Locks...); s.say(c, what, outcome(err, "extended")) }()
	default:
		s.Fatalf("what does %q mean?", what)
	}
}

// request parses "10s write x, read y policy dal ttl 5s".
func (s *stage) request(c *client, text string) (req lockkeeper.Request, wait time.Duration) {
	req.Holder = c.name
	words := strings.Fields(strings.ReplaceAll(text, ",", ""))
	if d, err := time.ParseDuration(words[0]); err == nil {
		wait, words = d, words[1:]
	}
	for i := 0; i+1 < len(words); i += 2 {
		switch words[i] {
		case "policy":
			req.Policy = words[i+1]
		case "ttl":
			req.TTL = s.duration(words[i+1])
		default:
			mode, err := lockkeeper.ParseMode(words[i])
			if err != nil {
				s.Fatal(err)
			}
			l := file(mode, strings.TrimSuffix(words[i+1], "/"))
			if strings.HasSuffix(words[i+1], "/") {
				l.Kind = lockkeeper.Dir
			}
			req.Locks = append(req.Locks, l)
		}
	}
	return req, wait
}

func (s *stage) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// answer returns a function that records the result of an acquiring call.
func (s *stage) answer(c *client, what string) func(*lock.Grant, error) {
	return func(g *lock.Grant, err error) {
		if g != nil {
			s.mu.Lock()
			c.grant = g
			s.mu.Unlock()
		}
		s.say(c, what, outcome(err, "granted"))
	}
}

func (s *stage) say(c *client, what, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf("%s: %s → %s", c.name, what, result))
}

// outcome formats an error without ids and times.
func outcome(err error, ok string) string {
	var conflicts []lockkeeper.ConflictInfo
	switch e := err.(type) {
	case nil:
		return ok
	case *lockkeeper.BlockedError:
		conflicts = e.Conflicts
	case *lockkeeper.LockTimeoutError:
		conflicts = e.Conflicts
	case *lockkeeper.RefusedError:
		return "refused: " + e.Reason
	default:
		if lockkeeper.CodeOf(err) != lockkeeper.CodeFailed {
			return string(lockkeeper.CodeOf(err))
		}
		return err.Error()
	}
	s := string(lockkeeper.CodeOf(err))
	for _, c := range conflicts {
		s += fmt.Sprintf(", %s %s %s %s for %s", c.Path, c.Kind, "by", c.Holder, c.BlockingMode)
	}
	return s
}

// describe writes the result of the last step.
func (s *stage) describe(out *strings.Builder) {
	s.mu.Lock()
	slices.Sort(s.said)
	for _, line := range s.said {
		fmt.Fprintln(out, "  "+line)
	}
	s.said = nil
	s.mu.Unlock()
	err := s.store.View(s.Context(), func(r store.Reader) error {
		recs, err := r.List(0, 100)
		if err != nil {
			return err
		}
		for _, rec := range recs {
			verb := map[store.State]string{store.StateHeld: "holds", store.StatePromoted: "is offered", store.StateWaiting: "waits for"}[rec.State]
			if rec.State == store.StateHeld && rec.Policy == "agent" && rec.Expires <= r.Now().Lease {
				verb = "held, and has run out:"
			}
			var locks []string
			for _, l := range rec.Locks {
				locks = append(locks, l.String())
			}
			line := fmt.Sprintf("%s %s %s", rec.Holder, verb, strings.Join(locks, ", "))
			if rec.State == store.StateWaiting {
				line += " behind " + behind(r, rec, recs)
			}
			fmt.Fprintln(out, "  | "+line)
		}
		return storetest.Check(r)
	})
	if err != nil {
		s.Error(err)
	}
}

// behind returns the names of the blockers of a waiting request.
func behind(r store.Reader, w *store.Record, recs []*store.Record) string {
	found, _, err := r.Overlapping(store.Query{Locks: w.Locks, Before: w.Ticket, Except: w.Ticket})
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, rec := range recs {
		if slices.ContainsFunc(found, func(o store.Overlap) bool { return o.Record.Ticket == rec.Ticket }) {
			names = append(names, rec.Holder)
		}
	}
	return strings.Join(names, ", ")
}
