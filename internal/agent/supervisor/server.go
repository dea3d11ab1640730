package supervisor

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"lockkeeper"
	"lockkeeper/internal/encoding/httpstatus"
)

// These are the limits of one command.
const (
	maxConnections = 16
	maxBody        = 64 << 10
	maxHeader      = 8 << 10
	maxRecords     = 20   // number of gaps that one command can record
	maxText        = 4096 // bytes of each text of a gap
	patience       = 10 * time.Second
	stopLimit      = time.Second // time for requests that are in progress when the run ends
)

// maxSocketPath is the longest name of a socket, in bytes.
const maxSocketPath = 107

// A Server is the supervisor's end of the socket, for one run.
type Server struct {
	handler  Handler
	token    string
	listener *net.UnixListener
	records  atomic.Int64

	mu      sync.RWMutex // each request holds it for reading
	stopped bool         // no request starts any more
}

// Listen creates the socket and its token. Serve closes the socket. dir belongs to this run
// and is accessible to this user only.
func Listen(dir string, h Handler) (*Server, error) {
	path := filepath.Join(dir, "supervisor.sock")
	if len(path) > maxSocketPath {
		return nil, &lockkeeper.InputError{Field: "socket", Value: path,
			Reason: fmt.Sprintf("longer than %d bytes", maxSocketPath), Next: "choose a directory with a shorter name"}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	return &Server{handler: h, token: rand.Text(), listener: l}, nil
}

// Environ returns the environment variables that the command needs to reach this server.
func (s *Server) Environ() []string {
	return []string{SocketVariable + "=" + s.listener.Addr().String(), TokenVariable + "=" + s.token}
}

// Serve answers until ctx ends, and returns when no request is in progress. The end of ctx
// is not an error.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.routes(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: patience,
		ReadTimeout:       patience,
		WriteTimeout:      2 * patience,
		IdleTimeout:       patience,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // clients get their errors as answers
	}
	served := make(chan error, 1)
	listener := &userListener{UnixListener: s.listener, slots: make(chan struct{}, maxConnections), ended: ctx.Done()}
	go func() { served <- server.Serve(listener) }()
	defer s.stop()
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("supervisor: %w", err), server.Close())
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-served
	return err
}

// stop prevents new requests and returns when no request is in progress.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

// A userListener accepts connections of this user, a bounded number at once.
type userListener struct {
	*net.UnixListener
	slots chan struct{}
	ended <-chan struct{}
}

func (l *userListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.ended:
		return nil, net.ErrClosed
	}
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			<-l.slots
			return nil, err
		}
		if checkPeer(conn) == nil {
			return &slotConn{conn, sync.OnceFunc(func() { <-l.slots })}, nil
		}
		conn.Close()
	}
}

// A slotConn is a connection that frees its slot when it is closed.
type slotConn struct {
	*net.UnixConn
	free func()
}

func (c *slotConn) Close() error {
	c.free()
	return c.UnixConn.Close()
}

// routes serves the requests over HTTP and passes them to the Handler.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /grant", func(w http.ResponseWriter, r *http.Request) {
		view, err := s.handler.Grant(r.Context())
		answer(w, view, err)
	})
	mux.HandleFunc("POST /gaps", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, s.record(w, r))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		if s.stopped {
			return // the client does not read an answer
		}
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) != 1 {
			answer(w, nil, &lockkeeper.RefusedError{Act: r.Method + " " + r.URL.Path, Reason: "wrong token", Next: "send the token in " + TokenVariable})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// record records a gap, unless the command has reached its limit of records.
func (s *Server) record(w http.ResponseWriter, r *http.Request) error {
	if s.records.Add(1) > maxRecords {
		return &lockkeeper.RefusedError{Act: "another record", Reason: fmt.Sprintf("the limit is %d per command", maxRecords), Next: "name the other files in your answer"}
	}
	var gap gapBody
	from := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	from.DisallowUnknownFields()
	if err := from.Decode(&gap); err != nil {
		return &lockkeeper.InputError{Field: "body", Reason: err.Error()}
	}
	if err := cmp.Or(checkText("path", gap.Path), checkText("reason", gap.Reason)); err != nil {
		return err
	}
	return s.handler.Gap(r.Context(), gap.Path, gap.Reason)
}

// checkText refuses a text that is too long to be recorded or is not plain text.
func checkText(field, text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return &lockkeeper.InputError{Field: field, Reason: "empty"}
	case len(text) > maxText:
		return &lockkeeper.InputError{Field: field, Value: text, Reason: fmt.Sprintf("longer than %d bytes", maxText)}
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return &lockkeeper.InputError{Field: field, Value: text, Reason: "not plain text"}
	}
	return nil
}

// answer sends the outcome of a request. It ignores errors, because then the client is gone.
func answer(w http.ResponseWriter, body any, err error) {
	status := http.StatusOK
	if err != nil {
		body, status = errorBody{Error: err.Error(), Code: lockkeeper.CodeOf(err)}, httpstatus.Of(err)
	}
	if body == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

// These environment variables have the socket of the supervisor and its token.
const (
	SocketVariable = "LOCKKEEPER_SOCKET"
	TokenVariable  = "LOCKKEEPER_SOCKET_TOKEN"
)

// A Handler handles the requests of a command. Its methods may be called concurrently, and
// return when their context ends.
type Handler interface {
	// Grant returns the paths that the command may write now.
	Grant(ctx context.Context) (GrantView, error)
	// Gap records that the command wants to change a path that it must not change.
	Gap(ctx context.Context, path, reason string) error
}

// A GrantView describes the grant of a command to the command.
type GrantView struct {
	ID     string     `json:"id"`
	Holder string     `json:"holder"`
	Write  []string   `json:"write"`
	Read   []string   `json:"read"`
	Until  *time.Time `json:"until"` // null: no limit
}

// An AnswerError reports that the supervisor refused a request or failed.
type AnswerError struct {
	Class   lockkeeper.Code
	Message string
}

func (e *AnswerError) Error() string { return fmt.Sprintf("supervisor: %s", e.Message) }

func (e *AnswerError) Code() lockkeeper.Code { return e.Class }

// These are the bodies of requests and of refusals.
type (
	gapBody struct {
		Path   string `json:"path"`
		Reason string `json:"reason"`
	}
	errorBody struct {
		Error string          `json:"error"`
		Code  lockkeeper.Code `json:"code"`
	}
)
