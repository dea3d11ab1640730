package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/deferred"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/view"
)

// Options of a Server. App and Look stay the caller's to close, after the server.
type Options struct {
	App     *project.Project
	View    *view.Reader
	Version string           // of the program
	Log     *slog.Logger     // default: nothing is logged
	Now     func() time.Time // default: time.Now
}

const (
	longestCall = 30 * time.Second // of a tool
	largest     = 8 << 20          // bytes of a message
	idleSession = time.Hour        // after which a session over HTTP ends
	leaving     = 10 * time.Second // to give claims back at the end of a session
)

// Server answers agents of one codebase.
type Server struct {
	app      *project.Project
	view     *view.Reader
	registry *session.Registry
	later    *deferred.Queue
	log      *slog.Logger
	now      func() time.Time
	mcp      *mcp.Server
	http     http.Handler
	window   *session.Caller // whose the standard streams are; nil: over HTTP each says who it is

	mu     sync.Mutex
	spoken map[*mcp.ServerSession]bool // sessions over HTTP that are to give back what they have
	places map[string]place            // of sessions over HTTP, by id
	closed bool
	done   sync.WaitGroup
}

// instructions tell a model what this is for.
const instructions = `Several agents and people change this codebase at the same time. Claim the files that you are about to change, all at once, with claim; write them with your own tools or with write; release when you are done. A refusal says who has the file and what to do instead: do not retry, and do not write it by other means. With defer a change lands by itself when the file is free. Every answer may bring news of files that became free. Paths are from the root of the codebase, or absolute.`

// New makes the server of an open codebase.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{app: o.App, view: o.View, registry: session.Open(o.App), later: deferred.Open(o.App), log: o.Log, now: o.Now,
		spoken: map[*mcp.ServerSession]bool{}, places: map[string]place{}}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "lockkeeper", Title: "Lockkeeper", Version: o.Version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}}})
	s.addTools()
	s.addResources()
	s.http = auth.RequireBearerToken(tokenOf, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
			JSONResponse: true, SessionTimeout: idleSession, MaxRequestBodyBytes: largest,
			DisableLocalhostProtection: true, // whoever mounts this knows the names that it may be asked by
		}))
	return s
}

// tokenOf binds an HTTP session to the authenticated caller.
func tokenOf(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	who, known := access.Who(ctx)
	if !known {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: who.ID()}, nil
}

// ServeHTTP answers one request over HTTP. Who asks is in its context (package access).
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
		http.Error(w, "requests from other web pages are refused; next: connect without a browser", http.StatusForbidden)
		return
	}
	who, _ := access.Who(r.Context()) // a stranger gets no further than the token
	id := r.Header.Get(sessionHeader)
	if id == "" && !s.makeRoom(who.ID()) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "as many sessions as can be are open; end one, or try again later", http.StatusServiceUnavailable)
		return
	}
	s.http.ServeHTTP(w, r)
	began := w.Header().Get(sessionHeader)
	s.heard(cmp.Or(began, id), who.ID(), began != "")
}

// Serve answers the program that started this one over its streams. It is for a Server that
// answers nobody else.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) (err error) {
	window, tty, err := process.CallingProgram()
	if err != nil {
		return err
	}
	s.window = &session.Caller{ID: "mcp-" + rand.Text(), Process: window, TTY: tty}
	ss, err := converse(ctx, s.mcp, in, out)
	if ss == nil {
		return err
	}
	if who := s.nameOf(ss); who.Agent != "" {
		err = errors.Join(err, s.leave(who))
	}
	return err
}

// attend has a session over HTTP give back what it has once it ends.
func (s *Server) attend(ss *mcp.ServerSession, who session.Caller) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &lockkeeper.RefusedError{Act: "call", Reason: "the server ends", Next: "connect again in a moment"}
	}
	if s.window != nil || s.spoken[ss] {
		return nil
	}
	s.spoken[ss] = true
	s.done.Go(func() {
		ss.Wait() // how a connection ended changes nothing here
		if err := s.leave(who); err != nil {
			s.log.Warn("a session could not give back what it has", "agent", who.Agent, "error", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.spoken, ss)
	})
	return nil
}

// Close ends all sessions, which give back what they have.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	var err error
	for ss := range s.mcp.Sessions() {
		err = errors.Join(err, ss.Close())
	}
	s.done.Wait()
	return err
}
