package api

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/web"
)

// A login link works once. Its session survives a restart and ends when the account is removed. URLs and the log
// contain no secret.
func TestLoginByLink(t *testing.T) {
	var log bytes.Buffer
	s := newScene(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	link, err := s.server.LoginLink(t.Context())
	must(t, err)
	address, ticket, found := strings.Cut(link, "/login#")
	if !found || address != s.server.Address() {
		t.Fatalf("%s", link)
	}
	s.send("GET", "/login", nil).want(ok).has("<form", "login.js").hasNot(ticket)
	s.send("GET", "/login/login.js", nil).want(ok).has("history.replaceState")
	s.send("GET", "/login/login.css", nil).want(ok)
	form := header("Content-Type", "application/x-www-form-urlencoded")
	s.send("GET", "/login?secret="+ticket, nil, form).want(ok) // GET does not use up the ticket
	a := s.send("POST", "/login", "secret="+ticket, s.sameOrigin, form).want(http.StatusSeeOther)
	if a.header.Get("Location") != "/" {
		t.Errorf("it leads to %s", a.header.Get("Location"))
	}
	cookie := (&http.Response{Header: a.header}).Cookies()[0]
	session := func(r *http.Request) { r.AddCookie(cookie) }
	s.send("POST", "/login", "secret="+ticket, s.sameOrigin, form).want(http.StatusUnauthorized)
	s.send("GET", "/api/v1/me", nil, session).want(ok).has(`"name":"ann"`, `"role":"admin"`)
	s.send("GET", "/", nil, session).want(ok)
	s.restart()
	s.send("GET", "/api/v1/me", nil, session).want(ok)
	out := s.send("POST", "/logout", nil, session, s.sameOrigin).want(http.StatusSeeOther)
	if gone := (&http.Response{Header: out.header}).Cookies()[0]; gone.Value != "" || gone.Expires.After(time.Now()) {
		t.Errorf("%+v", gone)
	}
	s.send("GET", "/api/v1/me", nil, session).want(http.StatusUnauthorized, codeUnauthorized) // a copied cookie is useless after logout
	s.restart()
	s.send("GET", "/api/v1/me", nil, session).want(http.StatusUnauthorized, codeUnauthorized)
	link, err = s.server.LoginLink(t.Context())
	must(t, err)
	_, ticket, _ = strings.Cut(link, "#")
	cookie = (&http.Response{Header: s.send("POST", "/login", "secret="+ticket, s.sameOrigin, form).want(http.StatusSeeOther).header}).Cookies()[0]
	s.send("GET", "/api/v1/me", nil, session).want(ok)
	must(t, s.People.Revoke("ann"))
	s.send("GET", "/api/v1/me", nil, session).want(http.StatusUnauthorized, codeUnauthorized)
	if a := s.send("GET", "/board", nil, session); a.status != http.StatusSeeOther || a.header.Get("Location") != "/login" {
		t.Errorf("%d %v", a.status, a.header)
	}
	s.send("GET", "/board", nil, session, header(web.PartHeader, "-")).want(http.StatusUnauthorized, codeUnauthorized)
	for _, secret := range []string{ticket, cookie.Value, s.tokens[access.Admin]} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has a secret: %s", log.String())
		}
	}
	// Sessions also expire.
	who := s.member("bob", access.Operator)
	over, err := s.People.StartSession(t.Context(), who, time.Now(), time.Now().Add(-time.Second))
	must(t, err)
	s.send("GET", "/api/v1/me", nil, func(r *http.Request) {
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: over})
	}).want(http.StatusUnauthorized)
}

func (a answer) hasNot(part string) answer {
	a.t.Helper()
	if bytes.Contains(a.body, []byte(part)) {
		a.t.Errorf("%s says %q", a.asked, part)
	}
	return a
}

// An address beyond this machine needs TLS or explicit consent.
func TestListening(t *testing.T) {
	s := newScene(t)
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0"} {
		o := s.opt
		o.Listen = address
		if _, err := Open(t.Context(), o); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, change := range []func(*Options){
		func(o *Options) { o.Listen = "127.0.0.1" }, func(o *Options) { o.Listen = strings.TrimPrefix(s.server.Address(), "http://") },
		func(o *Options) { o.Certificate = "x" }, func(o *Options) { o.Certificate, o.Key = "missing", "missing" },
	} {
		o := s.opt
		change(&o)
		if _, err := Open(t.Context(), o); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%v", err)
		}
	}
	o := s.opt
	o.Listen, o.BeyondLoopback = "0.0.0.0:0", true
	open, err := Open(t.Context(), o)
	must(t, err)
	if !strings.HasPrefix(open.Address(), "http://127.0.0.1:") {
		t.Errorf("%s", open.Address())
	}
	must(t, open.Close())
	alive := func(lockkeeper.Process) lockkeeper.Liveness { return lockkeeper.ProcessAlive }
	at, err := s.People.Servers(alive)
	must(t, err)
	if len(at) != 1 || at[0].Address != s.server.Address() {
		t.Errorf("%+v are announced, and only %s runs", at, s.server.Address())
	}
}

// With TLS, session cookies are sent only over TLS, and streams also work over HTTP/2.
func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	s := newScene(t, func(o *Options) {
		o.Certificate, o.Key, o.AllowHosts, o.Listen, o.BeyondLoopback = cert, key, nil, "127.0.0.1:0", false
	})
	s.client.CloseIdleConnections()
	s.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	if !strings.HasPrefix(s.server.Address(), "https://127.0.0.1:") {
		t.Errorf("%s", s.server.Address())
	}
	session := s.login(s.member("ann", access.Admin))
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.server.Address()+"/api/v1/me", nil)
	must(t, err)
	session(r)
	if !strings.HasPrefix(r.Header.Get("Cookie"), "__Host-") {
		t.Errorf("%v", r.Header)
	}
	got, err := s.client.Do(r)
	must(t, err)
	got.Body.Close()
	if got.ProtoMajor != 2 || got.StatusCode != ok {
		t.Errorf("%s %s", got.Proto, got.Status)
	}
	// An http origin is refused even if its host matches: anyone on the network could have written that page.
	s.send("POST", "/api/v1/run/stop", nil, session, header("Origin", strings.Replace(s.server.Address(), "https:", "http:", 1))).want(http.StatusForbidden, codeOrigin)
	s.send("POST", "/api/v1/run/stop", nil, session, header("Origin", s.server.Address())).want(http.StatusConflict)
	l := s.listen()
	<-l.events
	s.note(1)
	l.next()
	plain, err := net.Dial("tcp", strings.TrimPrefix(s.server.Address(), "https://"))
	must(t, err)
	defer plain.Close()
	_, err = plain.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))
	must(t, err, plain.SetReadDeadline(time.Now().Add(hung)))
	said := make([]byte, 100)
	if n, _ := plain.Read(said); bytes.Contains(said[:n], []byte("200 OK")) {
		t.Error("it answers without TLS")
	}
	s.client.CloseIdleConnections()
}

// certificate creates a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	bits, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bits}), 0o600))
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return cert, key, pool
}

// Browsers get pages, also at addresses that do not exist and before a login. Programs get JSON.
func TestUnknownAddresses(t *testing.T) {
	s := newScene(t)
	browser := header("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	for _, path := range []string{"/nowhere", "/unit/a/b/c/d?x=1", "/api/v1/nowhere", "/api/v1/locks", "/items"} {
		a := s.as("", "GET", path, nil, browser).want(http.StatusSeeOther)
		if to := a.header.Get("Location"); to != "/login" {
			t.Errorf("%s leads to %q", path, to)
		}
	}
	s.as("", "GET", "/login", nil, browser).want(http.StatusOK).has("lockkeeper login")
	s.as("", "GET", "/nowhere", nil).want(http.StatusUnauthorized).has(`"code":"unauthorized"`)
	s.as("", "GET", "/nowhere", nil, browser, header(web.PartHeader, "-")).want(http.StatusUnauthorized).has(`"code":"unauthorized"`)
	s.as(access.Viewer, "GET", "/nowhere", nil, browser).want(http.StatusNotFound).has(`"code":"not_found"`)

	session := s.login(s.member("vic", access.Viewer))
	s.send("GET", "/nowhere/<b>", nil, browser, session).want(http.StatusNotFound).has("<!DOCTYPE html>").has("no page has the address /nowhere/&lt;b&gt;").has(`href="/board"`)
	s.send("GET", "/do/retry", nil, browser, session).want(http.StatusMethodNotAllowed).has("<!DOCTYPE html>")
	s.send("GET", "/nowhere", nil, session).want(http.StatusNotFound).has(`"code":"not_found"`)
}
