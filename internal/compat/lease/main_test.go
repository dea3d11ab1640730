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

	"lockkeeper/internal/compat/lease"
)

func TestMain(m *testing.M) {
	if told, ok := os.LookupEnv(contenderEnv); ok {
		os.Exit(contend(told))
	}
	goleak.VerifyTestMain(m)
}

// torture returns how many times longer than usual random tests should run.
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

// hands are the simulated clocks of a test.
type hands struct {
	mu  sync.Mutex
	now lease.Reading
}

func newHands() *hands {
	return &hands{now: lease.Reading{Wall: time.Now().Round(0), Ticks: time.Hour, Origin: "boot"}}
}

func (h *hands) read() lease.Reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// pass advances both clocks.
func (h *hands) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Wall, h.now.Ticks = h.now.Wall.Add(d), h.now.Ticks+d
}

// set moves only the wall clock, forward or back.
func (h *hands) set(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Wall = h.now.Wall.Add(d)
}

// start reboots the host after it was off for a while.
func (h *hands) start(boot string, away time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Wall, h.now.Ticks, h.now.Origin = h.now.Wall.Add(away), time.Second, boot
}

// A scene is a lease file and its contenders.
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
	opt.Owner, opt.Clock, opt.BreakPause = owner, s.clock.read, 0
	opt.Note = func(text string) { s.notes = append(s.notes, text) }
	return opt
}

func (s *scene) lease(owner string) *lease.Lease { return lease.New(s.path, s.options(owner)) }

// holds acquires the lease file for an owner.
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

// A payload is a lease file as any tool reads it.
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

// write creates a lease file as a foreign tool would.
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

// foreign returns a payload of a foreign tool that was renewed that long ago.
func (s *scene) foreign(owner string, ago time.Duration) payload {
	at := s.clock.read().Wall.UTC().Truncate(time.Second).Add(-ago)
	return payload{Owner: owner, Token: "of " + owner, PID: 4711, CreatedAt: at, RenewedAt: at, ExpiresAt: at.Add(30 * time.Minute)}
}

// age sets the modification time of the file into the past.
func (s *scene) age(d time.Duration) {
	s.t.Helper()
	at := time.Now().Add(-d)
	must(s.t, os.Chtimes(s.path, at, at))
}

// isFree checks that only the guard is left.
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
