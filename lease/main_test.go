package lease_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper/lease"
)

func TestMain(m *testing.M) {
	if told, ok := os.LookupEnv(contenderEnv); ok {
		os.Exit(contend(told))
	}
	goleak.VerifyTestMain(m)
}

// torture is how many times longer than usual random tests should run.
func torture() int {
	n, err := strconv.Atoi(os.Getenv("LOCKKEEPER_TORTURE"))
	if err != nil {
		return 1
	}
	return max(1, n)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hands are the clocks of a test.
type hands struct {
	mu   sync.Mutex
	read lease.Reading
}

func newHands() *hands {
	return &hands{read: lease.Reading{Wall: time.Now().Round(0), Ticks: time.Hour, Origin: "boot"}}
}

func (h *hands) look() lease.Reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.read
}

// pass lets time go by.
func (h *hands) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read.Wall, h.read.Ticks = h.read.Wall.Add(d), h.read.Ticks+d
}

// set sets the wall clock, and it alone, forward or back.
func (h *hands) set(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read.Wall = h.read.Wall.Add(d)
}

// start starts the host again, after it was away.
func (h *hands) start(boot string, away time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read.Wall, h.read.Ticks, h.read.Origin = h.read.Wall.Add(away), time.Second, boot
}

// scene is a lease file and those who want it.
type scene struct {
	t     *testing.T
	path  string
	clock *hands
	notes []string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	return &scene{t: t, path: filepath.Join(t.TempDir(), "locks", "tidy.lock"), clock: newHands()}
}

func (s *scene) options(owner string) lease.Options {
	opt := lease.Defaults()
	opt.Owner, opt.Clock, opt.Settle = owner, s.clock.look, 0
	opt.Note = func(text string) { s.notes = append(s.notes, text) }
	return opt
}

func (s *scene) lease(owner string) *lease.Lease { return lease.New(s.path, s.options(owner)) }

// holds takes the lease for somebody.
func (s *scene) holds(owner string) *lease.Lease {
	s.t.Helper()
	l := s.lease(owner)
	must(s.t, l.Acquire(context.Background(), 0))
	return l
}

func (s *scene) release(l *lease.Lease) {
	s.t.Helper()
	done, err := l.Release(context.Background())
	if err != nil || !done {
		s.t.Fatalf("release: %v, %v", done, err)
	}
}

// payload is a lease file as anybody reads it.
type payload struct {
	Owner     string    `json:"owner"`
	Token     string    `json:"token"`
	PID       int       `json:"pid"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	RenewedAt time.Time `json:"last_renewed_at"`
}

func (s *scene) read() (p payload) {
	s.t.Helper()
	text, err := os.ReadFile(s.path)
	must(s.t, err)
	must(s.t, json.Unmarshal(text, &p))
	return p
}

// write puts a lease file there, as others would.
func (s *scene) write(p payload) {
	s.t.Helper()
	text, err := json.Marshal(p)
	must(s.t, err)
	s.put(text)
}

func (s *scene) put(text []byte) {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Dir(s.path), 0o755))
	must(s.t, os.WriteFile(s.path, text, 0o644))
}

// foreign is a lease of another tool that was renewed so long ago.
func (s *scene) foreign(owner string, ago time.Duration) payload {
	at := s.clock.look().Wall.UTC().Truncate(time.Second).Add(-ago)
	return payload{Owner: owner, Token: "of " + owner, PID: 4711, CreatedAt: at, RenewedAt: at, ExpiresAt: at.Add(30 * time.Minute)}
}

// age makes the file as old as it looks.
func (s *scene) age(d time.Duration) {
	s.t.Helper()
	at := time.Now().Add(-d)
	must(s.t, os.Chtimes(s.path, at, at))
}

// isFree holds that nothing but the guard is left.
func (s *scene) isFree() {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(s.path))
	must(s.t, err)
	for _, e := range entries {
		if e.Name() != ".tidy.lock.guard" {
			s.t.Errorf("%s is left", e.Name())
		}
	}
}
