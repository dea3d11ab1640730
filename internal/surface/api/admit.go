package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"lockkeeper/internal/machine/peer"
)

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
	ClientsUnseen  = "unseen"  // also clients whose process cannot be inspected
	ClientsAny     = "any"     // also agents in sandboxes
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
