package api

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// checkHost refuses requests to a name that this server is not known by. A page whose own
// name was pointed at this machine (DNS rebinding) sends that name, and browsers let no
// page choose another one.
func (s *Server) checkHost(c *call) error {
	local, _ := c.r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && s.knownAs(strings.ToLower(c.r.Host), local.String(), c.r.TLS != nil) {
		return nil
	}
	return &refusal{code: codeHost, reason: "this server is not known by the name that was asked", next: "use its address as it was printed, or start it with --allow-host"}
}

// knownAs reports whether a Host header is one that this server answers to: a name that
// was allowed; the very address that the connection came in at; and localhost, if that is
// an address of this machine alone.
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

// splitHost takes the port off a host.
func splitHost(host string) (name, port string) {
	if name, port, err := net.SplitHostPort(host); err == nil {
		return name, port
	}
	return strings.Trim(host, "[]"), ""
}
