package api

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/projecttest"
)

// A server whose store does not answer is alive but not ready. Unauthenticated clients learn no more than that.
// The server's log has the reason.
func TestNotReady(t *testing.T) {
	var log strings.Builder
	s := newScene(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	s.send("GET", "/readyz", nil).want(ok)
	gone, err := project.Open(t.Context(), project.Settings{Dir: s.Root, Env: projecttest.Lookup(s.Env)})
	must(t, err)
	queue, err := job.Open(gone)
	must(t, err, gone.Close())
	s.server.queue = queue
	a := s.send("GET", "/readyz", nil).want(http.StatusServiceUnavailable, codeBusy).has("the store does not answer")
	if strings.Contains(string(a.body), "sql") || strings.Contains(string(a.body), s.Root) {
		t.Errorf("strangers are told %s", a.body)
	}
	if !strings.Contains(log.String(), `msg="the store does not answer" error=`) {
		t.Errorf("the log says %q", log.String())
	}
	s.send("GET", "/healthz", nil).want(ok)
}
