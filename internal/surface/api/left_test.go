package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lockkeeper/internal/surface/access"
)

// gone records a response to a client whose connection the test breaks.
type gone struct{ *httptest.ResponseRecorder }

func (gone) SetReadDeadline(time.Time) error  { return nil }
func (gone) SetWriteDeadline(time.Time) error { return nil }

// ask handles a request in the calling goroutine. The request's connection ends with ctx.
func (s *scene) ask(ctx context.Context, path, key string) *httptest.ResponseRecorder {
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, s.server.listener.Addr())
	ctx = context.WithValue(ctx, peerKey{}, func() error { return nil }) // there is no connection whose peer could be checked
	r := httptest.NewRequestWithContext(ctx, "POST", s.server.Address()+path, io.NopCloser(strings.NewReader("{}")))
	r.Header.Set("Authorization", "Bearer "+s.tokens[access.Operator])
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(onceHeader, key)
	w := gone{httptest.NewRecorder()}
	s.server.ServeHTTP(w, r)
	return w.ResponseRecorder
}

// An act continues when its client disconnects, and happens once. A client that retries with the
// same key gets the answer.
func TestActsOfWhoLeft(t *testing.T) {
	s := newScene(t)
	var done atomic.Int64
	began, left := make(chan struct{}), make(chan struct{})
	slow := act(api+"/slow", operators, "Only here.", func(_ *Server, c *call, _ nothing) (string, error) {
		if done.Add(1) == 1 {
			close(began)
			<-left
		}
		return "done", c.r.Context().Err() // fails if the act's context was canceled
	})
	s.server.add(&slow)
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan *httptest.ResponseRecorder, 1)
	go func() { first <- s.ask(ctx, slow.pattern, "one") }()
	<-began
	leave()
	close(left)
	if w := <-first; w.Code != ok {
		t.Errorf("the act ended with its client: %d %s", w.Code, w.Body)
	}
	again := s.ask(t.Context(), slow.pattern, "one")
	if again.Code != ok || again.Header().Get("Idempotent-Replayed") == "" || done.Load() != 1 {
		t.Errorf("it was done %d times: %d %s", done.Load(), again.Code, again.Body)
	}
}

// Acts end with the server, whether or not their clients still wait.
func TestActsEndWithTheServer(t *testing.T) {
	s := newScene(t)
	began := make(chan struct{})
	endless := act(api+"/endless", operators, "Only here.", func(_ *Server, c *call, _ nothing) (string, error) {
		close(began)
		<-c.r.Context().Done()
		return "", c.r.Context().Err()
	})
	s.server.add(&endless)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.ask(t.Context(), endless.pattern, "two")
	}()
	<-began
	s.server.stop()
	<-ended
}
