package scriptedapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Server is a scripted API that runs.
type Server struct {
	URL string // the base of the API

	ids     atomic.Int64
	closing chan struct{}

	mu       sync.Mutex
	script   script
	requests []Request
	problems []string
}

// Start serves a script until the test ends. A request that the script has no answer for
// fails the test.
func Start(t testing.TB, plays ...Play) *Server {
	t.Helper()
	s, err := newServer(plays)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	s.URL = web.URL
	t.Cleanup(func() {
		close(s.closing)
		web.Close()
		for _, problem := range s.problems {
			t.Error("scripted API: " + problem)
		}
	})
	return s
}

func newServer(plays []Play) (*Server, error) {
	script, err := newScript(plays)
	if err != nil {
		return nil, err
	}
	return &Server{script: script, closing: make(chan struct{})}, nil
}

// Requests are the requests for messages so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	switch {
	case r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/v1/messages"):
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"data":[]}`) // questions about the account, its models …
	case r.URL.Path == "/v1/messages/count_tokens":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"input_tokens":10}`)
	default:
		ask := Request{At: time.Now(), Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
		if at, step, err := s.take(&ask); err != nil {
			(&Fail{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "script: " + err.Error()}).write(w)
		} else {
			s.answer(w, r, &ask, at, step)
		}
	}
}

// take keeps a request and finds its answer.
func (s *Server) take(ask *Request) (at place, step Step, err error) {
	err = ask.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, *ask)
	if err == nil {
		at, err = s.script.next(ask)
	}
	if err != nil {
		s.problems = append(s.problems, err.Error())
		return at, step, err
	}
	return at, s.script.filled(at, ask), nil
}
