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

// What one command may cost its supervisor, and the people who decide on its gaps.
const (
	maxConnections = 16
	maxBody        = 64 << 10
	maxHeader      = 8 << 10
	maxRecords     = 20 // gaps
	patience       = 10 * time.Second
	stopLimit      = time.Second // for requests under way when the run ends
)

// maxSocketPath is what the kernel takes as the name of a socket.
const maxSocketPath = 107

// Server is the supervisor's end of the socket, for one run.
type Server struct {
	desk     Desk
	token    string
	listener *net.UnixListener
	records  atomic.Int64

	mu      sync.Mutex
	stopped bool           // no request begins any more
	busy    sync.WaitGroup // requests under way
}

// Listen makes the socket and its token, for Serve, which closes it. The directory is
// this run's own, and nobody but this user may enter it.
func Listen(dir string, desk Desk) (*Server, error) {
	path := filepath.Join(dir, "supervisor.sock")
	if len(path) > maxSocketPath {
		return nil, &lockkeeper.InputError{Field: "socket", Value: path,
			Reason: fmt.Sprintf("longer than %d bytes", maxSocketPath), Next: "choose a directory with a shorter name"}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	return &Server{desk: desk, token: rand.Text(), listener: l}, nil
}

// Environ is what the command needs in its environment to speak to this server.
func (s *Server) Environ() []string {
	return []string{SocketVariable + "=" + s.listener.Addr().String(), TokenVariable + "=" + s.token}
}

// Serve answers until ctx ends, and returns when no request is under way. The
// end of ctx is no error.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: patience,
		ReadTimeout:       patience,
		WriteTimeout:      2 * patience,
		IdleTimeout:       patience,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // what callers do wrong is theirs to hear
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(newDoor(s.listener)) }()
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
		err = server.Close() // who dawdles is cut off
	}
	<-served
	return err
}

// begin says whether a request may begin; it ends with busy.Done.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.busy.Add(1)
	}
	return !s.stopped
}

// stop lets no request begin, and returns when none is under way.
func (s *Server) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.busy.Wait()
}

// door lets in connections of this user, a bounded number at once.
type door struct {
	*net.UnixListener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newDoor(l *net.UnixListener) *door {
	return &door{UnixListener: l, places: make(chan struct{}, maxConnections), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	select {
	case d.places <- struct{}{}:
	case <-d.closed:
		return nil, net.ErrClosed
	}
	for {
		conn, err := d.AcceptUnix()
		if err != nil {
			<-d.places
			return nil, err
		}
		if checkPeer(conn) == nil {
			return &visit{UnixConn: conn, places: d.places}, nil
		}
		conn.Close()
	}
}

// Close implements net.Listener.
func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.UnixListener.Close()
}

// visit is a connection that gives its place back.
type visit struct {
	*net.UnixConn
	places chan struct{}
	once   sync.Once
}

// Close implements net.Conn.
func (v *visit) Close() error {
	v.once.Do(func() { <-v.places })
	return v.UnixConn.Close()
}
