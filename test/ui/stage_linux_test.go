//go:build ui

package ui_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/api"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/lock"
	"lockkeeper/test/largerun"
)

// A stage is the sample application with its server.
type stage struct {
	*testing.T
	*projecttest.Codebase
	server *api.Server
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, Codebase: projecttest.Sample(t, projecttest.Options{Run: "  review: risky\n"}).Codebase(t)}
	s.serve("127.0.0.1:0")
	t.Cleanup(func() { must(t, s.server.Close()) })
	return s
}

// serve starts the server at an address.
func (s *stage) serve(listen string) {
	s.Helper()
	var err error
	s.server, err = api.Open(s.Context(), api.Options{App: s.App, View: s.View, Runs: s.Runs, Log: projecttest.Strict(s.T), Listen: listen, Owner: "ada"})
	must(s.T, err)
}

// request returns a request for a write lock on a file.
func (s *stage) request(holder, path string) lockkeeper.Request {
	s.Helper()
	l, err := s.App.Resolve(lockkeeper.Write, filepath.Join(s.Root, path))
	must(s.T, err)
	return lockkeeper.Request{Holder: holder, Locks: []lockkeeper.Lock{l}}
}

func (s *stage) hold(holder, path string) *lock.Grant {
	s.Helper()
	g, err := s.App.Locks.TryAcquire(s.Context(), s.request(holder, path))
	must(s.T, err)
	return g
}

// read returns the content of a file of the codebase, or "" if it is missing.
func (s *stage) read(path string) string {
	s.Helper()
	return s.Read(s.T, path)
}

// until waits until so returns true. It checks after every event, and at least once a second.
func (s *stage) until(ctx context.Context, what string, so func() bool) {
	s.Helper()
	f, err := feed.Open(ctx, s.App.Store, feed.Options{Poll: 50 * time.Millisecond})
	must(s.T, err)
	defer func() { must(s.T, f.Close()) }()
	for after := f.Last(); !so(); {
		wait, done := context.WithTimeout(ctx, time.Second) // not every change is in the log
		events, err := f.Next(wait, after)
		done()
		if ctx.Err() != nil {
			s.Fatalf("%s: %v", what, context.Cause(ctx))
		}
		if err == nil {
			after = events[len(events)-1].Seq
		}
	}
}

// loginLink returns a link that logs a person in at a server in another process.
func loginLink(t *testing.T, r *largerun.Run, address string) string {
	t.Helper()
	who, err := r.People.Member(t.Context(), "ada", access.Admin)
	must(t, err)
	ticket, err := r.People.Ticket(t.Context(), who, time.Now())
	must(t, err)
	return access.Server{Address: address}.LoginLink(ticket)
}

// streams returns how many clients follow the events of the server.
func streams(t *testing.T, s *stage, token string) (n int) {
	t.Helper()
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.Address()+"/metrics", nil)
	must(t, err)
	ask.Header.Set("Authorization", "Bearer "+token)
	got, err := http.DefaultClient.Do(ask)
	must(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	text, err := io.ReadAll(got.Body)
	must(t, err, got.Body.Close())
	_, after, _ := strings.Cut(string(text), "\nlockkeeper_sse_clients ")
	line, _, _ := strings.Cut(after, "\n")
	n, err = strconv.Atoi(line)
	must(t, err)
	return n
}
