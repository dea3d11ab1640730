//go:build ui

package ui_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/access"
	"lockkeeper/internal/acts"
	"lockkeeper/internal/app"
	"lockkeeper/internal/apptest"
	"lockkeeper/internal/dashboard"
	"lockkeeper/internal/feed"
	"lockkeeper/internal/httpapi"
	"lockkeeper/internal/view"
	"lockkeeper/lock"
)

// stage is the sample application with its server.
type stage struct {
	*testing.T
	root   string
	app    *app.App
	look   *view.Look
	runs   *acts.Runs
	pages  *dashboard.Dashboard
	server *httpapi.Server
}

func newStage(t *testing.T) *stage {
	t.Helper()
	p := apptest.Sample(t, apptest.Options{Run: "  review: risky\n"})
	s := &stage{T: t, root: p.Root, app: p.Open(t)}
	s.runs = acts.NewRuns(s.app, p.Env, nil)
	t.Cleanup(func() { must(t, s.runs.Close()) })
	s.look = view.New(s.app)
	var err error
	s.pages, err = dashboard.New(dashboard.Options{App: s.app, Look: s.look, Runs: s.runs, People: access.Open(s.app.AccessDir()), Failed: func(err error) { t.Error(err) }})
	must(t, err)
	s.serve("127.0.0.1:0")
	t.Cleanup(func() { must(t, s.server.Close()) })
	return s
}

// serve starts the server at an address.
func (s *stage) serve(listen string) {
	s.Helper()
	var err error
	s.server, err = httpapi.Open(s.Context(), httpapi.Options{App: s.app, Look: s.look, Runs: s.runs, Dashboard: s.pages, Listen: listen, Owner: "ada"})
	must(s.T, err)
}

// hold takes the lock on a file, or waits for it in the background until the test ends.
func (s *stage) request(holder, path string) lockkeeper.Request {
	s.Helper()
	l, err := s.app.Resolve(lockkeeper.Write, filepath.Join(s.root, path))
	must(s.T, err)
	return lockkeeper.Request{Holder: holder, Locks: []lockkeeper.Lock{l}}
}

func (s *stage) hold(holder, path string) *lock.Grant {
	s.Helper()
	g, err := s.app.Locks.TryAcquire(s.Context(), s.request(holder, path))
	must(s.T, err)
	return g
}

// read is a file of the codebase; empty: there is none.
func (s *stage) read(path string) string {
	text, err := os.ReadFile(filepath.Join(s.root, path))
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	return string(text)
}

// until waits until something is so, and looks whenever something happened.
func (s *stage) until(ctx context.Context, what string, so func() bool) {
	s.Helper()
	f, err := s.app.Feed(ctx, feed.Options{Poll: 50 * time.Millisecond})
	must(s.T, err)
	defer func() { must(s.T, f.Close()) }()
	for after := f.Last(); !so(); {
		wait, done := context.WithTimeout(ctx, time.Second) // not all of it is in the log
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
