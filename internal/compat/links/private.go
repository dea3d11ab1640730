package links

import (
	"context"
	"net/netip"
	"syscall"
)

// A privateError refuses to connect to an address that is not public.
type privateError struct{ address netip.Addr }

func (e *privateError) Error() string {
	return "resolves to " + e.address.String() + ", which is not a public address; not requested"
}

// refusePrivate checks each connection after name resolution and before anything is sent,
// so that a changed DNS answer cannot evade it.
func refusePrivate(public func(netip.Addr) bool) func(context.Context, string, string, syscall.RawConn) error {
	if public == nil {
		public = isPublic
	}
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err == nil && !public(at.Addr()) {
			err = &privateError{at.Addr()}
		}
		return err
	}
}

// isPublic reports whether an address is on the public internet.
func isPublic(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() { // loopback, link-local, multicast and 0.0.0.0 are excluded
		return false
	}
	for _, prefix := range special {
		if !prefix.Contains(a) {
			continue
		}
		inner, wraps := embeddedIPv4(prefix, a)
		return wraps && isPublic(inner)
	}
	return true
}

// special are reserved ranges and ranges that embed an IPv4 address.
var special = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32",
	"2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
)

func prefixes(list ...string) (out []netip.Prefix) {
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// embeddedIPv4 returns the IPv4 address that NAT64 or 6to4 would connect to.
func embeddedIPv4(in netip.Prefix, a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch in.String() {
	case "64:ff9b::/96":
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case "2002::/16":
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}
