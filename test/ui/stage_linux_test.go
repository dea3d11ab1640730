//go:build ui

package ui_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/api"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/lock"
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
