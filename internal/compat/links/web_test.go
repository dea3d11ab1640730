package links

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A site is a local web server that records its requests.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

// newSite answers by path with a status or a redirect. HEAD may be answered differently.
func newSite(t *testing.T, address string, answers map[string]string) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		if name, _, ok := r.BasicAuth(); ok || r.Header.Get("Cookie") != "" {
			t.Errorf("credentials were sent: %s", name)
		}
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if !ok {
			answer, ok = answers[r.URL.Path]
		}
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		case answer == "silence":
			<-r.Context().Done()
		case answer == "hang up":
			panic(http.ErrAbortHandler)
		case strings.HasPrefix(answer, "to "):
			http.Redirect(w, r, strings.TrimPrefix(answer, "to "), http.StatusFound)
		default:
			var status int
			fmt.Sscan(answer, &status)
			w.WriteHeader(status)
		}
	}))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s.Listener.Close()
	s.Listener = listener
	s.Config.ErrorLog = nil
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// checkURLs checks a document with URLs and returns their problems.
func checkURLs(t *testing.T, o Web, urls ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	for _, u := range urls {
		fmt.Fprintf(&text, "- [x](<%s>)\n", u)
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	rep, err := Check(t.Context(), dir, Options{Documents: []string{"README.md"}, Web: &o})
	if err != nil {
		t.Fatal(err)
	}
	wrong := map[string]string{}
	for _, f := range rep.Findings {
		if f.Line != slices.Index(urls, f.Target)+1 {
			t.Errorf("%s in line %d", f.Target, f.Line)
		}
		wrong[f.Target] = string(f.Problem) + ": " + f.Reason
	}
	return wrong
}

func web() Web {
	return Web{Parallel: 4, PerHost: 2, Timeout: 30 * time.Second, AllowPrivate: true}
}

// HEAD is sent first, then GET if that fails. Redirects are followed up to a limit.
//
// shows: LE-44
func TestURLs(t *testing.T) {
	s := newSite(t, "127.0.0.1:0", map[string]string{
		"/fine": "200", "/empty": "204", "HEAD /get-only": "405", "GET /get-only": "200", "HEAD /hangs-up": "hang up", "GET /hangs-up": "200",
		"/to-fine": "to /fine", "/to-gone": "to /gone", "/circle": "to /circle", "/login": "401", "/members": "403", "/busy": "429", "/broken": "500",
		"/always-hangs-up": "hang up", "/moved-nowhere": "to http://127.0.0.1:1/",
	})
	var urls []string
	want := map[string]string{
		"/fine": "", "/fine#part": "", "/empty": "", "/get-only": "", "/hangs-up": "", "/to-fine": "", "/login": "", "/members": "", "/busy": "",
		"/gone": "dead: answers 404 Not Found", "/to-gone": "dead: answers 404 Not Found", "/circle": "dead: more than 10 redirects",
		"/broken": "dead: answers 500 Internal Server Error", "/always-hangs-up": "dead: EOF", "/moved-nowhere": "dead: connect: connection refused",
	}
	for path := range want {
		urls = append(urls, s.URL+path)
	}
	urls = append(urls, "http://", "http://[bad/", strings.Replace(s.URL, "http://", "http://ada:secret@", 1)+"/fine", strings.Replace(s.URL, "http:", "", 1)+"/plain")
	slices.Sort(urls)
	got := checkURLs(t, web(), urls...)
	for path, problem := range want {
		if got[s.URL+path] != problem {
			t.Errorf("%s: %q, want %q", path, got[s.URL+path], problem)
		}
	}
	if got["http://"] != "dead: not a URL" || got["http://[bad/"] != "dead: not a URL" || len(got) != 9 {
		t.Errorf("%q", got)
	}
	heads := 0
	for _, a := range s.asked {
		if a == "GET /fine" {
			t.Error("GET was sent although HEAD succeeded")
		}
		if a == "HEAD /fine" {
			heads++
		}
	}
	if heads != 3 { // directly, with credentials and by redirect; not for its fragment
		t.Errorf("requested /fine %d times: %q", heads, s.asked)
	}
}

// A request ends at its timeout.
func TestSilentServer(t *testing.T) {
	s := newSite(t, "127.0.0.1:0", map[string]string{"/": "silence"})
	o := web()
	o.Timeout = 50 * time.Millisecond
	if got := checkURLs(t, o, s.URL+"/"); got[s.URL+"/"] != "dead: no answer within 50ms" {
		t.Errorf("%q", got)
	}
}

// Non-public addresses are not connected to, by whatever name, unless allowed.
//
// shows: LE-44
func TestPrivateAddresses(t *testing.T) {
	s := newSite(t, "127.0.0.1:0", map[string]string{"/": "200"})
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	o := web()
	o.AllowPrivate = false
	t.Setenv("HTTP_PROXY", s.URL) // a proxy would hide the address
	urls := []string{s.URL + "/", "http://localhost:" + port + "/", "http://[::ffff:127.0.0.1]:" + port + "/", "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::1]:" + port + "/", "http://0.0.0.0:" + port + "/"}
	got := checkURLs(t, o, urls...)
	for _, u := range urls {
		if !strings.HasPrefix(got[u], "refused: resolves to ") {
			t.Errorf("%s: %q", u, got[u])
		}
	}
	if len(s.asked) > 0 {
		t.Errorf("it was requested: %q", s.asked)
	}
	if got := checkURLs(t, web(), s.URL+"/"); len(got) > 0 || len(s.asked) == 0 {
		t.Errorf("allowed, but got %q", got)
	}
}

// A redirect cannot reach an address that may not be requested directly. The test treats
// one loopback address as public and another as not.
//
// shows: LE-44
func TestRedirectToPrivateAddress(t *testing.T) {
	inner := newSite(t, "127.0.0.2:0", map[string]string{"/secret": "200"})
	outer := newSite(t, "127.0.0.1:0", map[string]string{"/": "to " + inner.URL + "/secret", "/fine": "200"})
	o := web()
	o.AllowPrivate = false
	o.public = func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") }
	got := checkURLs(t, o, outer.URL+"/", outer.URL+"/fine")
	if got[outer.URL+"/"] != "refused: resolves to 127.0.0.2, which is not a public address; not requested" || len(got) != 1 {
		t.Errorf("%q", got)
	}
	if len(inner.asked) > 0 {
		t.Errorf("it was requested: %q", inner.asked)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("<"+outer.URL+"/> <"+inner.URL+"/> <http://[/>"), 0o644); err != nil {
		t.Fatal(err)
	}
	rep, err := Check(t.Context(), dir, Options{Documents: []string{"README.md"}, Web: &o})
	if err != nil || rep.Asked != 1 || len(rep.Findings) < 2 {
		t.Errorf("want one of two URLs requested; got %+v, %v", rep, err)
	}
}

// The number of parallel requests is bounded, in total and per host.
func TestRequestsAtOnce(t *testing.T) {
	var all, most atomic.Int64
	hosts := [2]struct{ now, most atomic.Int64 }{}
	gather := make(chan struct{})
	gathered := sync.OnceFunc(func() { close(gather) })
	handler := func(i int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raise(&most, all.Add(1))
			raise(&hosts[i].most, hosts[i].now.Add(1))
			if most.Load() == 3 { // the maximum
				gathered()
			}
			select {
			case <-gather:
			case <-r.Context().Done():
			}
			all.Add(-1)
			hosts[i].now.Add(-1)
		})
	}
	var urls []string
	for i := range hosts {
		s := httptest.NewServer(handler(i))
		defer s.Close()
		for n := range 20 {
			urls = append(urls, fmt.Sprintf("%s/%d", s.URL, n))
		}
	}
	if got := checkURLs(t, Web{Parallel: 3, PerHost: 2, Timeout: 30 * time.Second, AllowPrivate: true}, urls...); len(got) > 0 {
		t.Errorf("%q", got)
	}
	if most.Load() != 3 || hosts[0].most.Load() > 2 || hosts[1].most.Load() > 2 {
		t.Errorf("%d at once, %d and %d to one host", most.Load(), hosts[0].most.Load(), hosts[1].most.Load())
	}
}

func raise(most *atomic.Int64, now int64) {
	for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
	}
}

// A canceled check ends while a request is running.
func TestCanceledRequests(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel(why)
		<-r.Context().Done()
	}))
	defer s.Close()
	if _, err := ask(ctx, []string{s.URL + "/a", s.URL + "/b", s.URL + "/c"}, web()); !errors.Is(err, why) {
		t.Error(err)
	}
}

func TestPublicAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "2606:4700:4700::1111": true, "64:ff9b::101:101": true, "2002:101:101::1": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "100.64.0.1": false, "127.0.0.1": false, "169.254.169.254": false, "172.16.0.1": false,
		"192.168.1.1": false, "192.0.0.8": false, "192.0.2.1": false, "198.18.0.1": false, "203.0.113.9": false, "224.0.0.1": false, "240.0.0.1": false,
		"255.255.255.255": false, "::": false, "::1": false, "::ffff:10.0.0.1": false, "::10.0.0.1": false, "fe80::1%eth0": false, "fc00::1": false,
		"fd12:3456::1": false, "ff02::1": false, "2001:db8::1": false, "64:ff9b::a00:1": false, "2002:a00:1::1": false, "2002:7f00:1::": false, "fec0::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
