package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Web configures how URLs are requested.
type Web struct {
	Parallel     int           // maximum of parallel requests
	PerHost      int           // maximum per host
	Timeout      time.Duration // time limit of one request, redirects included
	AllowPrivate bool          // also request non-public addresses, and use a proxy

	public func(netip.Addr) bool // nil means isPublic; tests have no public addresses
}

const maxRedirects = 10

// A verdict is the result of requesting a URL.
type verdict struct {
	problem Problem // problem of the URL; empty if the URL answers
	reason  string
	unasked bool // no request was sent
}

// askWeb requests every URL once, however often it is referred to.
func (c *checker) askWeb(ctx context.Context) error {
	wanted := map[string]bool{}
	for _, s := range c.scans {
		for i := range s.references {
			if u := s.references[i].to.url; u != "" {
				wanted[withoutFragment(u)] = true
			}
		}
	}
	urls := interleaveHosts(slices.Sorted(maps.Keys(wanted)))
	answers, err := ask(ctx, urls, *c.Web)
	if err != nil {
		return err
	}
	for _, v := range answers {
		if !v.unasked {
			c.report.Asked++
		}
	}
	for _, s := range c.scans {
		for i := range s.references {
			r := &s.references[i]
			if r.to.url != "" {
				v := answers[withoutFragment(r.to.url)]
				r.problem, r.reason = v.problem, v.reason
			}
		}
	}
	return nil
}

func withoutFragment(u string) string {
	u, _, _ = strings.Cut(u, "#")
	return u
}

// interleaveHosts orders URLs so that hosts alternate: a slow host does not delay the
// others.
func interleaveHosts(urls []string) []string {
	round := map[string]int{}
	count := map[string]int{}
	for _, u := range urls {
		host := ""
		if parsed, err := url.Parse(u); err == nil {
			host = strings.ToLower(parsed.Host)
		}
		round[u] = count[host]
		count[host]++
	}
	slices.SortStableFunc(urls, func(a, b string) int { return cmp.Compare(round[a], round[b]) })
	return urls
}

func ask(ctx context.Context, urls []string, o Web) (map[string]verdict, error) {
	a := newAsker(o)
	defer a.transport.CloseIdleConnections()
	answers := make([]verdict, len(urls))
	if err := parallel(ctx, max(o.Parallel, 1), len(urls), func(i int) { answers[i] = a.ask(ctx, urls[i]) }); err != nil {
		return nil, err
	}
	found := map[string]verdict{}
	for i, u := range urls {
		found[u] = answers[i]
	}
	return found, nil
}

type asker struct {
	Web
	transport *http.Transport
	client    *http.Client

	mu    sync.Mutex
	hosts map[string]chan struct{} // a slot for each running request
}

func newAsker(o Web) *asker {
	dialer := &net.Dialer{} // the timeout covers the whole request
	if !o.AllowPrivate {
		dialer.ControlContext = refusePrivate(o.public)
	}
	a := &asker{Web: o, hosts: map[string]chan struct{}{}}
	a.transport = &http.Transport{
		DialContext: dialer.DialContext, MaxResponseHeaderBytes: 256 << 10, DisableCompression: true, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: max(o.PerHost, 1), IdleConnTimeout: o.Timeout,
	}
	if o.AllowPrivate { // a proxy hides the address of the server
		a.transport.Proxy = http.ProxyFromEnvironment
	}
	a.client = &http.Client{Transport: a, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}}
	return a
}

// RoundTrip implements http.RoundTripper. Every redirect waits for a slot of its own host.
// The slot is released with the response header, because bodies are not read.
func (a *asker) RoundTrip(req *http.Request) (*http.Response, error) {
	slot := a.slot(strings.ToLower(req.URL.Host))
	select {
	case slot <- struct{}{}:
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	defer func() { <-slot }()
	return a.transport.RoundTrip(req)
}

func (a *asker) slot(host string) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hosts[host] == nil {
		a.hosts[host] = make(chan struct{}, max(a.PerHost, 1))
	}
	return a.hosts[host]
}

// ask sends HEAD, then GET if that fails: many servers do not support HEAD.
func (a *asker) ask(ctx context.Context, address string) verdict {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return verdict{problem: Dead, reason: "not a URL", unasked: true}
	}
	u.User = nil // never send credentials from a document
	status, err := a.request(ctx, http.MethodHead, u.String())
	var private *privateError
	if ctx.Err() == nil && !errors.As(err, &private) && (err != nil || status >= 400) {
		status, err = a.request(ctx, http.MethodGet, u.String())
	}
	switch {
	case errors.As(err, &private):
		at, _ := errors.AsType[*url.Error](err)
		return verdict{problem: Refused, reason: private.Error(), unasked: at != nil && at.URL == u.String()} // unasked is false after a redirect, because the reason is then about another URL
	case err != nil:
		return verdict{problem: Dead, reason: causeOf(err)}
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests:
		return verdict{} // the page exists, but requires access
	case status >= 400:
		return verdict{problem: Dead, reason: strings.TrimSpace(fmt.Sprintf("answers %d %s", status, http.StatusText(status)))}
	}
	return verdict{}
}

func (a *asker) request(ctx context.Context, method, address string) (status int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.Timeout, fmt.Errorf("no answer within %s", a.Timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("User-Agent", "lockkeeper-links (checks links)")
	req.Header.Set("Accept", "*/*")
	resp, err := a.client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// causeOf returns a request error without the method and the URL, which are shown
// separately.
func causeOf(err error) string {
	if at, ok := errors.AsType[*url.Error](err); ok {
		err = at.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		err = op.Err
	}
	return err.Error()
}

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
