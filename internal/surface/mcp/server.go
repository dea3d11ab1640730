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

// Options configure a Server. The caller closes App and View after the server.
type Options struct {
	App     *project.Project
	View    *view.Reader
	Version string           // version of the program
	Log     *slog.Logger     // default: nothing is logged
	Now     func() time.Time // default: time.Now
}

const (
	longestCall = 30 * time.Second // limit of a tool call
	largest     = 8 << 20          // limit of a message, in bytes
	idleSession = time.Hour        // idle time after which a session over HTTP ends
	leaving     = 10 * time.Second // limit for releasing claims at the end of a session
)

// A Server serves the agents of one codebase.
type Server struct {
	app      *project.Project
	view     *view.Reader
	registry *session.Registry
	later    *deferred.Queue
	log      *slog.Logger
	now      func() time.Time
	mcp      *mcp.Server
	http     http.Handler
	window   *session.Caller // the agent at the standard streams; nil: serves HTTP

	mu     sync.Mutex
	spoken map[*mcp.ServerSession]bool // sessions over HTTP that have called a tool, and must release their claims
	active map[string]activity         // activity of sessions over HTTP, by id
	closed bool
	done   sync.WaitGroup
}

// instructions tell a model how to use the tools.
const instructions = `Several agents and people change this codebase at the same time. Claim all files that you will change with one call of claim; write them with your own tools or with write; release them when you are done. A refusal says who holds the file and what to do instead: do not retry, and do not write the file by other means. With defer, a change lands as soon as the file is free. Answers can include news about files that became free. Paths are relative to the root of the codebase, or absolute.`

func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{app: o.App, view: o.View, registry: session.Open(o.App), later: deferred.Open(o.App), log: o.Log, now: o.Now,
		spoken: map[*mcp.ServerSession]bool{}, active: map[string]activity{}}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "lockkeeper", Title: "Lockkeeper", Version: o.Version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}}})
	s.addTools()
	s.addResources()
	s.http = auth.RequireBearerToken(tokenOf, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
			JSONResponse: true, SessionTimeout: idleSession, MaxRequestBodyBytes: largest,
			DisableLocalhostProtection: true, // the HTTP server that mounts this handler checks host names
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

// ServeHTTP serves one request. Its context holds the caller (package access).
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
		http.Error(w, "requests from other web pages are refused; next: connect without a browser", http.StatusForbidden)
		return
	}
	who, _ := access.Who(r.Context()) // unauthenticated requests fail at the token check
	id := r.Header.Get(sessionHeader)
	if id == "" && !s.makeRoom(who.ID()) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many sessions are open; next: end one, or try again later", http.StatusServiceUnavailable)
		return
	}
	s.http.ServeHTTP(w, r)
	began := w.Header().Get(sessionHeader)
	s.heard(cmp.Or(began, id), who.ID(), began != "")
}

// Serve serves the program that started this process, over its standard streams. A Server
// that uses Serve must not serve HTTP.
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

// attend releases the claims of an HTTP session when the session ends.
func (s *Server) attend(ss *mcp.ServerSession, who session.Caller) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &lockkeeper.RefusedError{Act: "call", Reason: "the server is stopping", Next: "connect again later"}
	}
	if s.window != nil || s.spoken[ss] {
		return nil
	}
	s.spoken[ss] = true
	s.done.Go(func() {
		ss.Wait() // the error of Wait does not matter: the claims are released in any case
		if err := s.leave(who); err != nil {
			s.log.Warn("cannot release the claims of a session", "agent", who.Agent, "error", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.spoken, ss)
	})
	return nil
}

// Close ends all sessions and releases their claims.
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

// ServeNowhere serves a directory without locks: it has no tools and says why.
func ServeNowhere(ctx context.Context, version string, in io.ReadCloser, out io.WriteCloser) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "lockkeeper", Title: "Lockkeeper", Version: version},
		&mcp.ServerOptions{Instructions: "This directory has no locks, so you need not claim files here. A person can set up locks with lockkeeper init."})
	_, err := converse(ctx, server, in, out)
	return err
}

// converse serves over streams until the client closes them or ctx ends.
func converse(ctx context.Context, server *mcp.Server, in io.ReadCloser, out io.WriteCloser) (*mcp.ServerSession, error) {
	ss, err := server.Connect(ctx, &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: 2 * largest}, nil)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- ss.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = ss.Close()
		<-ended
	}
	return ss, err
}

// Limits of concurrent sessions over HTTP.
const (
	mostSessions = 1_024
	mostOfOne    = 512 // sessions with one token, so that one user cannot lock others out
)

const sessionHeader = "Mcp-Session-Id"

type activity struct {
	owner string // id of the person
	at    time.Time
}

// heard records activity in a new or known session.
func (s *Server) heard(id, owner string, began bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if began || s.active[id].owner == owner {
		s.active[id] = activity{owner, s.now()}
	}
}

// makeRoom reports whether a client can begin a session. Clients such as Claude Code often
// leave without ending theirs. So if the limit is reached, makeRoom ends the session that has
// been silent longest, if its claims have expired.
func (s *Server) makeRoom(owner string) bool {
	silent, full := s.longestSilent(owner)
	if !full {
		return true
	}
	if silent == nil {
		return false
	}
	if err := silent.Close(); err != nil {
		s.log.Warn("cannot end an abandoned session", "error", err)
		return false
	}
	return true
}

// longestSilent reports whether the limit is reached, and returns the session to end: one of
// the owner's if the owner has too many. It also forgets sessions that have ended.
func (s *Server) longestSilent(owner string) (silent *mcp.ServerSession, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := map[string]*mcp.ServerSession{}
	for ss := range s.mcp.Sessions() {
		live[ss.ID()] = ss
	}
	own := 0
	for id, p := range s.active {
		switch {
		case live[id] == nil:
			delete(s.active, id)
		case p.owner == owner:
			own++
		}
	}
	tooMany := own >= mostOfOne
	since := s.now().Add(-s.app.Config.Policies()[session.Policy].TTL)
	for id, p := range s.active {
		if p.at.Before(since) && (p.owner == owner || !tooMany) {
			silent, since = live[id], p.at
		}
	}
	return silent, tooMany || len(live) >= mostSessions
}
