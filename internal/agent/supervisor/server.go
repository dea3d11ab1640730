package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"lockkeeper"
)

// These are the limits of one command.
const (
	maxConnections = 16
	maxBody        = 64 << 10
	maxHeader      = 8 << 10
	maxRecords     = 20 // gaps
	patience       = 10 * time.Second
	stopLimit      = time.Second // for requests in progress when the run ends
)

// maxSocketPath is the longest name of a socket, in bytes.
const maxSocketPath = 107

// A Server is the supervisor's end of the socket, for one run.
type Server struct {
	handler  Handler
	token    string
	listener *net.UnixListener
	records  atomic.Int64

	mu      sync.Mutex
	stopped bool           // no request starts any more
	busy    sync.WaitGroup // requests in progress
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
	go func() { served <- server.Serve(newUserListener(s.listener)) }()
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

// begin reports whether a request may start. The request ends with busy.Done.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.busy.Add(1)
	}
	return !s.stopped
}

// stop prevents new requests and returns when no request is in progress.
func (s *Server) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.busy.Wait()
}

// A userListener accepts connections of this user, a bounded number at once.
type userListener struct {
	*net.UnixListener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newUserListener(l *net.UnixListener) *userListener {
	return &userListener{UnixListener: l, slots: make(chan struct{}, maxConnections), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *userListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			<-l.slots
			return nil, err
		}
		if checkPeer(conn) == nil {
			return &slotConn{UnixConn: conn, slots: l.slots}, nil
		}
		conn.Close()
	}
}

// Close implements net.Listener.
func (l *userListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.UnixListener.Close()
}

// A slotConn is a connection that frees its slot when it is closed.
type slotConn struct {
	*net.UnixConn
	slots chan struct{}
	once  sync.Once
}

// Close implements net.Conn.
func (c *slotConn) Close() error {
	c.once.Do(func() { <-c.slots })
	return c.UnixConn.Close()
}
