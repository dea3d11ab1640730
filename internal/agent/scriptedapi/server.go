package scriptedapi

import (
	"encoding/json"
	"fmt"
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

// A Request is a received request, with the parts that determine the answer.
type Request struct {
	At     time.Time
	Method string
	Path   string
	Header http.Header
	Body   []byte

	Model   string
	Stream  bool
	Tools   []string // the tools that the model may use, according to Claude Code
	Prompt  string   // the user's last message
	Results []string // the results of the tools that the model used in its last turn, if it used any after that message

	answers string // the id of the tool call that the results belong to
}

// A Server is a running scripted API.
type Server struct {
	URL string // the base of the API

	dir     string // replaces {dir} in texts and tool inputs
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
	return StartIn(t, "", plays...)
}

// StartIn is Start for an agent that works in a directory, which {dir} in the script stands for.
func StartIn(t testing.TB, dir string, plays ...Play) *Server {
	t.Helper()
	s, err := New(dir, plays...)
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

// New returns a server that is not started, for programs other than tests.
func New(dir string, plays ...Play) (*Server, error) {
	script, err := newScript(dir, plays)
	if err != nil {
		return nil, err
	}
	return &Server{dir: dir, script: script, closing: make(chan struct{})}, nil
}

// Requests returns the requests for answers so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	speaks := dialectOf(r.URL.Path)
	if r.Method != http.MethodPost || speaks == nil {
		w.Header().Set("Content-Type", "application/json")
		// Answer requests about the account, its models, and the length of a text.
		io.WriteString(w, `{"data":[],"models":[],"input_tokens":10,"totalTokens":10}`)
		return
	}
	ask := Request{At: time.Now(), Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	if at, step, err := s.take(speaks, &ask); err != nil {
		(&Fail{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "script: " + err.Error()}).write(w)
	} else {
		s.answer(w, r, speaks, &ask, at, step)
	}
}

// A dialect is the API between an agent and its model.
type dialect interface {
	// read parses the body of a request.
	read(*Request) error
	// write sends a step that is an answer.
	write(s *Server, w http.ResponseWriter, ask *Request, at stepIndex, step Step)
}

// dialectOf returns the API of a path, or nil if the path asks for no answer.
func dialectOf(path string) dialect {
	switch {
	case path == "/v1/messages":
		return messages{}
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return contents{}
	}
	return nil
}

// take stores a request and finds its answer.
func (s *Server) take(speaks dialect, ask *Request) (at stepIndex, step Step, err error) {
	err = speaks.read(ask)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, *ask)
	if err == nil {
		at, err = s.script.next(ask)
	}
	if err == nil {
		step = s.script.filled(at, ask, s.dir)
		err = step.staysInside(s.dir)
	}
	if err != nil {
		s.problems = append(s.problems, err.Error())
	}
	return at, step, err
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, speaks dialect, ask *Request, at stepIndex, step Step) {
	if step.Wait > 0 && !s.pause(r, time.After(step.Wait)) {
		return
	}
	switch {
	case step.Hang:
		s.pause(r, nil)
	case step.Fail != nil:
		step.Fail.write(w)
	default:
		speaks.write(s, w, ask, at, step)
	}
}

// pause waits, and reports whether the client is still connected.
func (s *Server) pause(r *http.Request, over <-chan time.Time) bool {
	select {
	case <-over:
		return true
	case <-r.Context().Done():
	case <-s.closing:
	}
	return false
}

func (f *Fail) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(f.Status)
	if f.Body != "" {
		fmt.Fprint(w, f.Body)
		return
	}
	fmt.Fprintf(w, "%s", encode(object{"type": "error", "error": object{"type": f.Type, "message": f.Message}, "request_id": "req_scripted"}))
}

type object = map[string]any

// encode returns a value as JSON.
func encode(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // the script has a value that JSON cannot represent
	}
	return b
}

// events begins a stream of server-sent events. The returned function sends one.
func events(w http.ResponseWriter) func(kind string, fields object) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(kind string, fields object) {
		fields["type"] = kind
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, encode(fields))
	}
}
