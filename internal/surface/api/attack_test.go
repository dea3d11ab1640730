package api

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/surface/access"
)

// addresses returns one URL path for each route. Its placeholders need not name existing objects.
func (s *scene) addresses() (list [][2]string) {
	for _, rt := range s.server.table {
		list = append(list, [2]string{rt.method, wildcard.ReplaceAllString(strings.TrimSuffix(rt.pattern, "{$}"), "x")})
	}
	return list
}

// An unauthenticated client reaches only the open routes, with any method and any body.
func TestNothingWithoutAToken(t *testing.T) {
	s := newScene(t)
	token := s.tokens[access.Admin]
	for i, at := range s.addresses() {
		if s.server.table[i].open {
			continue
		}
		for name, change := range map[string]func(*http.Request){
			"none":         func(*http.Request) {},
			"wrong":        header("Authorization", "Bearer lk_"+strings.Repeat("A", 43)),
			"empty":        header("Authorization", "Bearer "),
			"cut":          header("Authorization", "Bearer "+token[:len(token)-1]),
			"basic":        header("Authorization", "Basic "+token),
			"in the query": func(r *http.Request) { r.URL.RawQuery = "token=" + token + "&access_token=" + token },
			"cookie":       func(r *http.Request) { r.AddCookie(&http.Cookie{Name: s.server.cookieName(), Value: token}) },
		} {
			a := s.send(at[0], at[1], nil, change, s.sameOrigin)
			if a.status != http.StatusUnauthorized && a.status != http.StatusSeeOther {
				t.Errorf("%s, token %s: %d %.200s", a.asked, name, a.status, a.body)
			}
			if a.status == http.StatusSeeOther && (a.header.Get("Location") != "/login" || at[0] != "GET") {
				t.Errorf("%s leads to %s", a.asked, a.header.Get("Location"))
			}
		}
	}
	// Strangers cannot find out which paths exist: unknown paths are refused, too.
	for _, at := range []string{"/api/v1/nowhere", "/nowhere", "/.env", "/debug/pprof/", "/api/v1/grants/../../x"} {
		if a := s.send("GET", at, nil); a.status != http.StatusUnauthorized && a.status != http.StatusNotFound {
			t.Errorf("%s: %d", at, a.status)
		}
	}
	s.send("DELETE", "/api/v1/state", nil).want(http.StatusUnauthorized, codeUnauthorized)
}

// Each role may use the routes that the table says, and no others.
// shows: CF-14
func TestRoles(t *testing.T) {
	s := newScene(t)
	for i, at := range s.addresses() {
		rt := &s.server.table[i]
		if rt.open || rt.pattern == "/events" {
			continue
		}
		for _, role := range []access.Role{access.Viewer, access.Operator, access.Agent} {
			if role.Meets(rt.need) {
				continue
			}
			a := s.as(role, at[0], at[1], nil).want(http.StatusForbidden).has("the-"+string(role), string(rt.need.AtLeast))
			if rt.failure != failureLFS { // git-lfs errors have no codes
				a.want(http.StatusForbidden, codeForbidden)
			}
		}
	}
	for _, at := range []string{"/events", "/metrics", "/", "/board"} {
		s.as(access.Agent, "GET", at, nil).want(http.StatusForbidden, codeForbidden)
	}
	s.as(access.Admin, "GET", "/do/clear-locks", nil).want(http.StatusMethodNotAllowed, codeMethod)
}

// A page that points its own DNS name at this machine is refused, even on the login page.
func TestForeignHosts(t *testing.T) {
	s := newScene(t, func(o *Options) { o.AllowHosts = []string{"Locks.example.org", "exact.example.org:8443"} })
	port := s.server.Address()[strings.LastIndexByte(s.server.Address(), ':')+1:]
	ask := func(path, host string) answer {
		return s.as(access.Admin, "GET", path, nil, func(r *http.Request) { r.Host = host })
	}
	for _, host := range []string{"evil.example", "evil.example:" + port, "127.0.0.1.evil.example:" + port, "localhost.evil.example", "127.0.0.1", "127.0.0.1:1", "127.0.0.2:" + port, "localhost",
		"localhost:1", "[::1]:" + port, "0.0.0.0:" + port, "127.1:" + port, "2130706433:" + port, "user@127.0.0.1:" + port, "localhost.:" + port, "exact.example.org", "exact.example.org:1", "x.locks.example.org"} {
		for _, path := range []string{"/state", "/login", "/healthz", "/api/v1/me", "/nowhere"} {
			a := ask(path, host)
			if a.status != http.StatusMisdirectedRequest && a.status != http.StatusBadRequest {
				t.Errorf("%s as %s: %d", path, host, a.status)
			}
		}
	}
	for _, host := range []string{"127.0.0.1:" + port, "localhost:" + port, "LOCALHOST:" + port, "[::ffff:127.0.0.1]:" + port, "locks.example.org", "locks.example.org:443", "LOCKS.example.org", "exact.example.org:8443"} {
		ask("/api/v1/me", host).want(ok)
	}
}

// Requests that a page of another origin makes a browser send are refused, even if the browser adds the session.
// Cookies are not bound to a port, so another server on this machine counts as another origin.
func TestForeignPages(t *testing.T) {
	s := newScene(t)
	session := s.login(s.member("ann", access.Admin))
	post := func(change ...func(*http.Request)) answer {
		return s.send("POST", "/api/v1/run/stop", map[string]any{}, append([]func(*http.Request){session}, change...)...)
	}
	for name, change := range map[string][]func(*http.Request){
		"cross-site form":    {header("Origin", "https://evil.example"), header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate")},
		"cross-site fetch":   {header("Origin", "https://evil.example"), header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "cors")},
		"another port":       {header("Origin", "http://127.0.0.1:1"), header("Sec-Fetch-Site", "same-site")},
		"an old browser":     {header("Origin", "https://evil.example")},
		"an opaque origin":   {header("Origin", "null")},
		"no origin":          {},
		"typed":              {header("Sec-Fetch-Site", "none")},
		"lies in part":       {header("Origin", "https://evil.example"), header("Sec-Fetch-Site", "same-origin")},
		"the name with more": {header("Origin", s.server.Address()+".evil.example")},
		"the name as a user": {header("Origin", "http://127.0.0.1@evil.example")},
		"another scheme":     {header("Origin", "ftp"+strings.TrimPrefix(s.server.Address(), "http"))},
	} {
		a := post(change...)
		if a.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, a.status)
		}
		a.want(http.StatusForbidden, codeOrigin)
	}
	post(s.sameOrigin).want(http.StatusConflict)                         // it reaches the handler: no run is active
	post(header("Origin", s.server.Address())).want(http.StatusConflict) // a browser without fetch metadata
	post(header("Sec-Fetch-Site", "same-origin")).want(http.StatusConflict)

	// HTML forms cannot send JSON, and no other media type is parsed as JSON.
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/json-x"} {
		s.send("POST", "/api/v1/run/stop", `{"now":true}`, session, s.sameOrigin, header("Content-Type", media)).want(http.StatusUnsupportedMediaType, codeMedia)
	}
	// Pages of other origins cannot load data or hold streams open. Links to this server work.
	for _, path := range []string{"/state", "/api/v1/me", "/events", "/"} {
		s.send("GET", path, nil, session, header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "no-cors"), header("Sec-Fetch-Dest", "image")).want(http.StatusForbidden, codeOrigin)
		s.send("GET", path, nil, session, header("Sec-Fetch-Site", "same-site"), header("Sec-Fetch-Mode", "cors"), header("Sec-Fetch-Dest", "empty")).want(http.StatusForbidden, codeOrigin)
		s.send("GET", path, nil, session, header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate"), header("Sec-Fetch-Dest", "iframe")).want(http.StatusForbidden, codeOrigin)
	}
	s.send("GET", "/api/v1/me", nil, session, header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate"), header("Sec-Fetch-Dest", "document")).want(ok)
	// A page of another origin cannot log anyone in.
	ticket, err := s.People.Ticket(t.Context(), s.member("eve", access.Viewer), time.Now())
	must(t, err)
	s.send("POST", "/login", "secret="+ticket, header("Content-Type", "application/x-www-form-urlencoded"), header("Origin", "https://evil.example")).want(http.StatusForbidden, codeOrigin)
	// No response has CORS headers that permit other origins.
	for _, a := range []answer{post(s.sameOrigin), s.send("OPTIONS", "/state", nil, session, header("Origin", "https://evil.example"), header("Access-Control-Request-Method", "POST"))} {
		for name := range a.header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: %s", a.asked, name)
			}
		}
	}
}

// Every response, including errors, carries the security headers.
func TestEveryAnswerIsConfined(t *testing.T) {
	s := newScene(t)
	for _, a := range []answer{
		s.as(access.Admin, "GET", "/state", nil), s.send("GET", "/login", nil), s.send("GET", "/", nil), s.send("GET", "/state", nil), s.as(access.Admin, "GET", "/nowhere", nil),
		s.as(access.Admin, "GET", "/board", nil), s.as(access.Admin, "GET", "/healthz", nil, func(r *http.Request) { r.Host = "evil.example" }), s.as(access.Admin, "GET", "/metrics", nil),
	} {
		policy := a.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: no %s in %q", a.asked, want, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Referrer-Policy") != "same-origin" || a.header.Get("X-Frame-Options") != "DENY" ||
			!strings.Contains(a.header.Get("Cache-Control"), "no-store") || a.header.Get("Server") != "" {
			t.Errorf("%s: %v", a.asked, a.header)
		}
	}
}

// A path that is not canonical or climbs out of its directory is refused, and no file is read.
func TestAddressesThatClimb(t *testing.T) {
	s := newScene(t)
	for _, path := range []string{
		"/assets/../../../../etc/passwd", "/login/../../server.go", "/login/..%2f..%2fserver.go", "/login/%2e%2e/login.html", "/login/login.html", "/login/login.html%00.js", "/assets/%2e%2e%2f%2e%2e%2fgo.mod",
		"/api/v1/rescue/../../../lockkeeper.yaml", "/api/v1/rescue/..%2f..%2f..%2flockkeeper.yaml", "/api/v1/rescue/%2e%2e", "/api/v1/items/..%2f..%2fetc%2fpasswd/log", "//etc/passwd", "/./state", "/api//v1/state",
		`/api/v1/rescue/..\..\lockkeeper.yaml`, "/api/v1/waiting/plan/../../etc", "/api/v1/waiting/plan/..%2f..%2fetc", "/item/..%2f..%2fetc%2fpasswd",
	} {
		a := s.as(access.Admin, "GET", path, nil)
		if a.status != http.StatusNotFound {
			t.Errorf("%s: %d %.300s", path, a.status, a.body)
		}
		if bytes.Contains(a.body, []byte("root:")) || bytes.Contains(a.body, []byte("allowed_write_paths")) {
			t.Errorf("%s: a file was read: %.300s", path, a.body)
		}
	}
	for _, path := range []string{"/pipeline/analyze/..%2f..%2fetc", "/analyze/..%2fx", "/api/v1/units/redo/..%2f..%2fx", "/api/v1/units/redo/a%2f..%2fb", "/api/v1/rescue/..%2fx/drop", "/api/v1/rescue/%2e%2e%2fx/land"} {
		s.as(access.Admin, "POST", path, map[string]any{}).want(http.StatusNotFound)
	}
	for _, path := range []string{"../outside.rb", "/etc/passwd", "app/../../x", "app/x\x00y", ""} {
		s.as(access.Admin, "POST", "/api/v1/grants", map[string]any{"write": []string{path}}).want(http.StatusBadRequest, "input")
	}
}

// A pattern locks nothing: a request names its files. An existing name may contain such characters.
func TestPatternsAreRefused(t *testing.T) {
	s := newScene(t)
	must(t, os.WriteFile(filepath.Join(s.App.Root.Dir(), "app", "[id].rb"), nil, 0o644))
	for _, path := range []string{"*", "app/*.rb", "app/**", "app/?.rb"} {
		for _, body := range []map[string]any{{"write": []string{path}}, {"read": []string{path}}, {"upgradeable": []string{path}, "policy": "dal"}, {"lock_request": map[string]any{"write_paths": []string{path}}}} {
			s.as(access.Agent, "POST", "/api/v1/grants", body).want(http.StatusBadRequest, "input").has("a pattern", "list the files")
		}
	}
	s.as(access.Agent, "GET", "/api/v1/check?write=*", nil).want(http.StatusBadRequest, "input").has("list the files")
	for _, path := range []string{"app/[id].rb", "app/[name].rb"} {
		s.as(access.Agent, "POST", "/api/v1/grants", map[string]any{"write": []string{path}}).want(ok).has(path)
	}
}

// A grant is named by its id or the start of it.
func TestShortGrantIDs(t *testing.T) {
	s := newScene(t)
	g := s.taken(access.Agent, "app/x.rb")
	short, token := g.ID[:8], map[string]any{"token": g.Token}
	at := "/api/v1/grants/" + short
	s.as(access.Agent, "GET", at, nil).want(ok).has(g.ID)
	s.as(access.Agent, "POST", at+"/renew", token).want(ok).has(g.ID)
	s.as(access.Agent, "POST", "/api/v1/write", map[string]any{"grant": short, "token": g.Token, "changes": []map[string]any{{"path": "app/x.rb", "text": "x"}}}).want(ok)
	s.as(access.Agent, "POST", at+"/release", map[string]any{"token": "wrong"}).want(http.StatusConflict, "not_held")
	s.as(access.Agent, "POST", at+"/release", token).want(ok).has(`"released":true`, g.ID)
	s.as(access.Agent, "POST", at+"/release", token).want(ok).has(`"released":false`)
	s.as(access.Agent, "POST", at+"/renew", token).want(http.StatusConflict, "not_held")
	s.as(access.Agent, "GET", at, nil).want(http.StatusNotFound, codeNotFound)

	// Of many ids two start alike.
	seen := map[string]string{}
	for i := range 2_000 {
		g, err := s.App.Hold(t.Context(), lockkeeper.Request{Holder: "x", Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: fmt.Sprintf("app/f%d.rb", i), Kind: lockkeeper.File}, Mode: lockkeeper.Read}}}, 0)
		must(t, err)
		start := g.ID[:4]
		if other := seen[start]; other != "" {
			s.as(access.Agent, "GET", "/api/v1/grants/"+start, nil).has("ambiguous", g.ID, other)
			return
		}
		seen[start] = g.ID
	}
	t.Error("no two ids start alike")
}

// Text from models and files is escaped on every page.
func TestScriptsAreText(t *testing.T) {
	s := newScene(t)
	const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>`
	name := "app/models/<script>alert(3)</script>.rb"
	s.audited("blog/posts", evil, "Fix it")
	g := s.taken(access.Agent, name)
	s.as(access.Agent, "POST", "/api/v1/write", map[string]any{"grant": g.ID, "token": g.Token, "changes": []map[string]any{{"path": name, "text": evil}}}).want(ok)
	s.as(access.Agent, "POST", "/api/v1/grants", map[string]any{"write": []string{"app/x.rb"}, "holder": evil, "reason": evil}).want(ok)
	for _, path := range []string{"/state", "/api/v1/waiting", "/api/v1/waiting/item/blog/posts/i1", "/api/v1/audit", "/api/v1/landings", "/api/v1/grants", "/api/v1/locks", "/api/v1/now",
		"/", "/decide", "/board", "/locks", "/audit", "/run", "/timeline", "/rescue"} {
		a := s.as(access.Admin, "GET", path, nil).want(ok)
		if bytes.Contains(a.body, []byte("<script>alert")) || bytes.Contains(a.body, []byte("<img src=x")) {
			t.Errorf("%s has it as it was said: %.2000s", path, a.body)
		}
		media := a.header.Get("Content-Type")
		if !strings.HasPrefix(media, "application/json") && !strings.HasPrefix(media, "text/html") {
			t.Errorf("%s is %s", path, media)
		}
	}
	s.as(access.Admin, "GET", "/api/v1/waiting/item/blog/posts/"+"<script>", nil).want(http.StatusNotFound)
	if a := s.as(access.Admin, "GET", "/<script>alert(1)</script>", nil); bytes.Contains(a.body, []byte("<script>alert")) {
		t.Errorf("an address comes back: %s", a.body)
	}
}

// Bodies and headers are limited in size, and slow senders are cut off.
func TestOversizedAndSlowRequests(t *testing.T) {
	s := newScene(t)
	large := func(n int) string { return `{"reason":"` + strings.Repeat("x", n) + `"}` }
	s.as(access.Operator, "POST", "/api/v1/items/x/cancel", large(1<<20)).want(http.StatusRequestEntityTooLarge, codeTooLarge)
	s.as(access.Agent, "POST", "/api/v1/write", large(9<<20)).want(http.StatusRequestEntityTooLarge, codeTooLarge)
	s.as(access.Agent, "POST", "/api/v1/write", `{"text":"`+strings.Repeat("x", 2<<20)+`"}`).want(http.StatusBadRequest, "input") // large enough to be read
	if a, err := s.try("GET", "/state", nil, header("X-Long", strings.Repeat("x", 64<<10))); err == nil && a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 64 KiB: %d", a.status)
	}
	s.as(access.Viewer, "GET", "/api/v1/audit?text="+strings.Repeat("x", 8<<10), nil).want(ok)

	hurried := newScene(t, func(o *Options) { o.Limits = Limits{Read: 300 * time.Millisecond} })
	conn, err := net.Dial("tcp", strings.TrimPrefix(hurried.server.Address(), "http://"))
	must(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/v1/run/stop HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", conn.RemoteAddr(), hurried.tokens[access.Operator])
	must(t, conn.SetReadDeadline(time.Now().Add(hung)))
	said, err := io.ReadAll(conn)
	if err != nil || !bytes.Contains(said, []byte(" 413 ")) {
		t.Errorf("a body that never comes: %v %.200s", err, said)
	}
	if said := s.raw("POST /api/v1/run/stop HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer " + s.tokens[access.Operator] + "\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n{}\r\n0\r\n\r\n"); !strings.Contains(said, " 400 ") || !strings.Contains(said, "the body is incomplete") {
		t.Errorf("an invalid body: %.300s", said)
	}
	// A client that sends its whole body before it reads still gets the response.
	much := strings.Repeat("x", 4<<20)
	if said := s.raw("POST /api/v1/run/stop HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer " + s.tokens[access.Operator] + "\r\nConnection: close\r\nContent-Length: " + fmt.Sprint(len(much)) + "\r\n\r\n" + much); !strings.Contains(said, " 413 ") {
		t.Errorf("a body of 4 MiB: %.300s", said)
	}
}

// raw sends text unchanged, with the server's address in place of %s, and returns the response up to the end of
// the connection.
func (s *scene) raw(text string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.server.Address(), "http://"))
	must(s.t, err)
	defer conn.Close()
	must(s.t, conn.SetDeadline(time.Now().Add(hung)))
	_, err = io.WriteString(conn, strings.Replace(text, "%s", conn.RemoteAddr().String(), 1))
	must(s.t, err)
	said, err := io.ReadAll(conn)
	must(s.t, err)
	return string(said)
}

// Slow unauthenticated clients do not block the open routes for others, and their bodies are limited.
func TestSlowStrangers(t *testing.T) {
	s := newScene(t, func(o *Options) { o.Limits = Limits{Strangers: 2} })
	for _, ask := range []string{"POST /login", "POST /login", "GET /healthz", "GET /login", "POST /login"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.server.Address(), "http://"))
		must(t, err)
		defer conn.Close()
		// The "100 Continue" response shows that the server has begun to read.
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", ask, conn.RemoteAddr(), s.server.Address())
		must(t, conn.SetReadDeadline(time.Now().Add(hung)))
		said := make([]byte, len("HTTP/1.1 100 Continue"))
		if _, err := io.ReadFull(conn, said); err != nil || string(said) != "HTTP/1.1 100 Continue" {
			t.Fatalf("%s: %v %s", ask, err, said)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/login", "/login/login.js"} {
		s.send("GET", path, nil).want(ok)
	}
	s.login(s.member("ann", access.Admin))
	s.send("POST", "/login", "secret="+strings.Repeat("x", 8<<10), s.sameOrigin, header("Content-Type", "application/x-www-form-urlencoded")).want(http.StatusRequestEntityTooLarge, codeTooLarge)
}

// During a flood, each request is answered or refused. Afterward, the server works as before.
func TestFloods(t *testing.T) {
	s := newScene(t, func(o *Options) { o.Limits = Limits{Requests: 4, Connections: 64} })
	var answered, turnedAway, strangers atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 20 {
				change := header("Authorization", "Bearer "+s.tokens[access.Viewer])
				if i%2 == 0 {
					change = header("Authorization", "Bearer wrong")
				}
				a, err := s.try("GET", "/api/v1/now", nil, change)
				switch {
				case err != nil:
					turnedAway.Add(1)
				case a.status == ok:
					answered.Add(1)
				case a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "":
					turnedAway.Add(1)
				case a.status == http.StatusUnauthorized:
					strangers.Add(1)
				default:
					t.Errorf("%d %.200s", a.status, a.body)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d answered, %d turned away, %d strangers", answered.Load(), turnedAway.Load(), strangers.Load())
	if answered.Load() == 0 || strangers.Load() == 0 {
		t.Error("no client was answered")
	}
	for name, room := range s.server.rooms {
		if room.taken() != 0 {
			t.Errorf("%d places of room %d are still taken", room.taken(), name)
		}
	}
	for range 4 { // occupy every place until the test ends
		leave, err := s.server.rooms[roomUsual].enter(t.Context())
		must(t, err)
		defer leave()
	}
	a := s.as(access.Viewer, "GET", "/api/v1/now", nil).want(http.StatusServiceUnavailable, codeBusy)
	if a.header.Get("Retry-After") == "" {
		t.Error("no response says when to retry")
	}
}

// Repeated failed logins from one address must wait. A correct secret still logs in, even from the same address.
func TestLoginsAreCounted(t *testing.T) {
	now := time.Now()
	s := newScene(t, func(o *Options) { o.Now = func() time.Time { return now } })
	form := header("Content-Type", "application/x-www-form-urlencoded")
	for range 10 {
		s.send("POST", "/login", "secret=guess", s.sameOrigin, form).want(http.StatusUnauthorized).has("not valid")
	}
	a := s.send("POST", "/login", "secret=guess", s.sameOrigin, form).want(http.StatusTooManyRequests)
	if a.header.Get("Retry-After") != "6" {
		t.Errorf("Retry-After: %q", a.header.Get("Retry-After"))
	}
	s.send("POST", "/login", "secret="+s.tokens[access.Viewer], s.sameOrigin, form).want(http.StatusSeeOther)
	s.login(s.member("ann", access.Admin))
	s.as(access.Viewer, "GET", "/api/v1/me", nil).want(ok) // a token needs no login
	s.send("POST", "/login", "secret=guess", s.sameOrigin, form).want(http.StatusTooManyRequests)
	now = now.Add(6 * time.Second)
	s.send("POST", "/login", "secret=guess", s.sameOrigin, form).want(http.StatusUnauthorized)
	s.send("POST", "/login", "secret=guess", s.sameOrigin, form).want(http.StatusTooManyRequests)
	if left := s.server.logins.take("192.0.2.1", now); left != 0 {
		t.Errorf("a client at another address has to wait %s", left)
	}
	for i := range 2 * addressesKept {
		s.server.logins.take(fmt.Sprint(i), now)
	}
	if n := len(s.server.logins.left); n > addressesKept+1 {
		t.Errorf("%d addresses are kept", n)
	}
}
