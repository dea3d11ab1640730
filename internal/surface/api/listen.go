package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"lockkeeper"
	"lockkeeper/internal/machine/peer"
)

// listen opens the listening address of a server. Without TLS, others on the network can read and change the
// traffic, so an address beyond this machine needs the operator's consent.
func listen(ctx context.Context, o *Options) (net.Listener, error) {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, &lockkeeper.InputError{Field: "listen", Value: o.Listen, Reason: "not an address and a port", Next: "use one like 127.0.0.1:0, where 0 is any free port"}
	}
	if (o.Certificate == "") != (o.Key == "") {
		return nil, &lockkeeper.InputError{Field: "tls", Reason: "TLS needs a certificate and a key", Next: "give both --tls-cert and --tls-key"}
	}
	if o.Certificate == "" && !o.BeyondLoopback && !isLoopback(host) {
		return nil, &lockkeeper.RefusedError{Act: "listening at " + o.Listen, Reason: "other machines can reach it, and without TLS anyone on the network can read tokens and act in your name",
			Next: "give --tls-cert and --tls-key, or listen at 127.0.0.1 and forward the port with ssh; use --insecure-beyond-loopback only in a network that you trust"}
	}
	var config net.ListenConfig
	config.SetMultipathTCP(false) // a client on this machine gains nothing from several paths
	l, err := config.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, &lockkeeper.InputError{Field: "listen", Value: o.Listen, Reason: err.Error(), Next: "use another port, or 0 for any free one"}
	}
	bounded := &boundedListener{Listener: l, places: make(chan struct{}, o.Limits.Connections), closed: make(chan struct{})}
	if o.Certificate == "" {
		return bounded, nil
	}
	pair, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
	if err != nil {
		bounded.Close()
		return nil, &lockkeeper.InputError{Field: "tls", Value: o.Certificate, Reason: err.Error(), Next: "name a certificate and its key, both in PEM"}
	}
	return tls.NewListener(bounded, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}), nil
}

// isLoopback reports whether a host is reachable only from this machine.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Unmap().IsLoopback()
}

// writeBuffer is the size of the kernel's send buffer for a connection. The default would use megabytes for each
// client that does not read.
const writeBuffer = 256 << 10

// A boundedListener limits the number of open connections. Further connections wait in the kernel's backlog.
type boundedListener struct {
	net.Listener
	places chan struct{}

	once   sync.Once
	closed chan struct{}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(writeBuffer) // fails only if the connection is closed, which the first read reports
	}
	return &placedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// A placedConn frees its place in the listener when it is closed.
type placedConn struct {
	net.Conn
	leave func()
}

func (c *placedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// addressOfListener returns the URL of a server.
func addressOfListener(l net.Listener, secure bool) string {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return fmt.Sprintf("%s://%s", scheme, l.Addr())
	}
	host := at.Addr().Unmap()
	if host.IsUnspecified() { // the server listens on every address, so loopback works
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return fmt.Sprintf("%s://%s", scheme, netip.AddrPortFrom(host, at.Port()))
}

// checkHost refuses requests for unknown host names. After DNS rebinding, a page of another
// site sends its own name, which a page cannot change.
func (s *Server) checkHost(c *call) error {
	local, _ := c.r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && s.knownAs(strings.ToLower(c.r.Host), local.String(), c.r.TLS != nil) {
		return nil
	}
	return &refusal{code: codeHost, reason: "unknown host name", next: "use the address that the server printed, or start it with --allow-host"}
}

// knownAs reports whether this server accepts a Host header: an allowed name, the local
// address of the connection, or localhost if that address is a loopback address.
func (s *Server) knownAs(host, local string, secure bool) bool {
	if slices.Contains(s.hosts, host) {
		return true
	}
	name, port := splitHost(host)
	if slices.Contains(s.hosts, name) {
		return true
	}
	at, err := netip.ParseAddrPort(local)
	if err != nil {
		return false
	}
	if port == "" {
		port = "80"
		if secure {
			port = "443"
		}
	}
	if port != strconv.Itoa(int(at.Port())) {
		return false
	}
	if name == "localhost" {
		return at.Addr().Unmap().IsLoopback()
	}
	said, err := netip.ParseAddr(name)
	return err == nil && said.Unmap() == at.Addr().Unmap()
}

func splitHost(host string) (name, port string) {
	if name, port, err := net.SplitHostPort(host); err == nil {
		return name, port
	}
	return strings.Trim(host, "[]"), ""
}

// These settings say which authenticated clients on this machine a server admits. Clients on other machines are
// always admitted.
const (
	ClientsOutside = "outside" // clients known to run outside every sandbox
	ClientsUnseen  = "unseen"  // also admits clients whose process cannot be inspected
	ClientsAny     = "any"     // also admits agents in sandboxes
)

// peerKey is the context key of a connection's peer check, a func() error.
type peerKey struct{}

// withPeer lets the requests of a connection ask whether its client may be served. The
// first request runs the check, and the others share its result.
func (s *Server) withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, sync.OnceValue(func() error { return s.peers.Check(ctx, c) }))
}

// checkPeer refuses clients that run in a sandbox, even if they have a valid token or
// session.
func (s *Server) checkPeer(c *call) error {
	if s.opt.Clients == ClientsAny {
		return nil
	}
	verdict, ok := c.r.Context().Value(peerKey{}).(func() error)
	if !ok {
		return errors.New("connection context has no peer check")
	}
	err := verdict()
	var confined *peer.ConfinedError
	var unseen *peer.UnseenError
	switch {
	case errors.As(err, &confined):
		s.opt.Log.Warn("refused a client in a sandbox", "pid", confined.PID)
		return &refusal{code: codeConfined, reason: "agents in a sandbox may not use the server",
			next: "finish your task without the server, and write what you need from a person into your answer"}
	case errors.As(err, &unseen):
		if s.opt.Clients == ClientsUnseen {
			return nil
		}
		s.opt.Log.Warn("refused a client", "reason", unseen)
		return &refusal{code: codeUnseen, reason: fmt.Sprintf("%s, so it may come out of a sandbox", unseen),
			next: "use a client that runs on this machine as the user of the server, or set serve.local_clients: unseen in lockkeeper.yaml"}
	}
	return err
}
