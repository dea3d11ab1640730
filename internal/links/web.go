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
	"time"
)

// Web says how URLs are asked.
type Web struct {
	AtOnce       int           // requests at once, over all hosts
	PerHost      int           // and to one host
	Timeout      time.Duration // of one request, redirects included
	AllowPrivate bool          // ask addresses that are not public, and through a proxy

	public func(netip.Addr) bool // nil: isPublic; tests have no public addresses
}

const maxRedirects = 10

// verdict is what became of a URL.
type verdict struct {
	problem Problem // empty: it answers
	reason  string
	unasked bool // nothing was sent to anybody
}

// askWeb asks every URL once, however often it is referred to.
func (c *checker) askWeb(ctx context.Context) error {
	wanted := map[string]bool{}
	for _, s := range c.scans {
		for i := range s.references {
			if u := s.references[i].to.url; u != "" {
				wanted[withoutFragment(u)] = true
			}
		}
	}
	urls := inTurn(slices.Sorted(maps.Keys(wanted)))
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

// inTurn orders URLs such that hosts take turns: those who wait for one host do not
// keep the others waiting.
func inTurn(urls []string) []string {
	turn := map[string]int{}
	count := map[string]int{}
	for _, u := range urls {
		host := hostOf(u)
		turn[u] = count[host]
		count[host]++
	}
	slices.SortStableFunc(urls, func(a, b string) int { return cmp.Compare(turn[a], turn[b]) })
	return urls
}

func hostOf(u string) string {
	if parsed, err := url.Parse(u); err == nil {
		return strings.ToLower(parsed.Host)
	}
	return ""
}

// ask asks URLs, a bounded number at once.
func ask(ctx context.Context, urls []string, o Web) (map[string]verdict, error) {
	a := newAsker(o)
	defer a.close()
	answers := make([]verdict, len(urls))
	next := make(chan int)
	var asking sync.WaitGroup
	for range min(max(o.AtOnce, 1), len(urls)) {
		asking.Go(func() {
			for i := range next {
				answers[i] = a.ask(ctx, urls[i])
			}
		})
	}
	for i := range urls {
		next <- i // after a cancellation each takes no time
	}
	close(next)
	asking.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("check of URLs: %w", context.Cause(ctx))
	}
	found := map[string]verdict{}
	for i, u := range urls {
		found[u] = answers[i]
	}
	return found, nil
}

// asker asks one URL after the other.
type asker struct {
	Web
	transport *http.Transport
	client    *http.Client

	mu    sync.Mutex
	hosts map[string]chan struct{} // a slot for each request under way
}

func newAsker(o Web) *asker {
	dialer := &net.Dialer{} // each request has its time, whatever it is spent on
	if !o.AllowPrivate {
		dialer.ControlContext = refuser(o.public)
	}
	a := &asker{Web: o, hosts: map[string]chan struct{}{}}
	a.transport = &http.Transport{
		DialContext: dialer.DialContext, MaxResponseHeaderBytes: 256 << 10, DisableCompression: true, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: max(o.PerHost, 1), IdleConnTimeout: o.Timeout,
	}
	if o.AllowPrivate { // whom a proxy connects to cannot be seen from here
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

func (a *asker) close() { a.transport.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper: every step of a redirect waits for a slot
// of its own host. The slot is given back with the answer's head: bodies are not read.
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

// ask asks for the head of a page, and for the page where that does not answer:
// many servers know no HEAD.
func (a *asker) ask(ctx context.Context, address string) verdict {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return verdict{problem: Dead, reason: "not a URL", unasked: true}
	}
	u.User = nil // nobody's password leaves a document
	status, err := a.request(ctx, http.MethodHead, u.String())
	var private *privateError
	if ctx.Err() == nil && !errors.As(err, &private) && (err != nil || status >= 400) {
		status, err = a.request(ctx, http.MethodGet, u.String())
	}
	switch {
	case errors.As(err, &private):
		return verdict{problem: Refused, reason: private.Error(), unasked: addressOf(err) == u.String()}
	case err != nil:
		return verdict{problem: Dead, reason: causeOf(err)}
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests:
		return verdict{} // there is something, and it is not for us
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
	req.Header.Set("User-Agent", "lockkeeper-links (checks that links lead somewhere)")
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

// addressOf is where a request failed: behind a redirect, somewhere else than it began.
func addressOf(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		return at.URL
	}
	return ""
}

// causeOf is an error of a request without the method and the address, which are
// told beside it.
func causeOf(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	return err.Error()
}
