package api

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
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

// splitHost separates the port from a host.
func splitHost(host string) (name, port string) {
	if name, port, err := net.SplitHostPort(host); err == nil {
		return name, port
	}
	return strings.Trim(host, "[]"), ""
}
