package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/access"
	"lockkeeper/lock"
)

func TestMain(m *testing.M) {
	projecttest.Main(m, projecttest.Program{Name: confinedClient, Main: askConfined})
}

var must = projecttest.Must

// scene is the sample application with its locks in an SQLite file, a server on loopback,
// and a token of each role.
type scene struct {
	*projecttest.Codebase
	t      testing.TB
	opt    Options
	server *Server
	tokens map[access.Role]string
	client *http.Client
}

// newScene opens the application and serves it. Each change modifies the options.
func newScene(t testing.TB, change ...func(*Options)) *scene {
	t.Helper()
	return newSceneOf(t, projecttest.Sample(t, projecttest.Options{}), change...)
}

// newSceneOf serves a codebase.
func newSceneOf(t testing.TB, place *projecttest.Project, change ...func(*Options)) *scene {
	t.Helper()
	s := &scene{Codebase: place.Codebase(t), t: t, tokens: map[access.Role]string{}}
	for _, role := range []access.Role{access.Viewer, access.Operator, access.Admin, access.Agent} {
		s.tokens[role] = s.Token(t, "the-"+string(role), role)
	}
	s.opt = Options{App: s.App, View: s.View, Runs: s.Runs, Owner: "ann", Version: "test"}
	for _, c := range change {
		c(&s.opt)
	}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(s.client.CloseIdleConnections)
	s.serve()
	t.Cleanup(func() { must(t, s.server.Close()) })
	return s
}

func (s *scene) serve() {
	s.t.Helper()
	var err error
	s.server, err = Open(s.t.Context(), s.opt)
	must(s.t, err)
}

// restart closes the server and opens another one at the same address.
func (s *scene) restart() {
	s.t.Helper()
	address := strings.TrimPrefix(s.server.Address(), "http://")
	must(s.t, s.server.Close())
	s.opt.Listen = address
	s.serve()
}

// An answer is one response of the server.
type answer struct {
	t      testing.TB
	asked  string
	status int
	header http.Header
	body   []byte
}

// as sends a request with the token of a role, or without a token if role is empty.
func (s *scene) as(role access.Role, method, path string, body any, change ...func(*http.Request)) answer {
	s.t.Helper()
	return s.send(method, path, body, append([]func(*http.Request){func(r *http.Request) {
		if role != "" {
			r.Header.Set("Authorization", "Bearer "+s.tokens[role])
		}
	}}, change...)...)
}

// send sends a request. A string body is sent unchanged, any other body as JSON.
func (s *scene) send(method, path string, body any, change ...func(*http.Request)) answer {
	s.t.Helper()
	a, err := s.try(method, path, body, change...)
	must(s.t, err)
	return a
}

// try is send for requests that may get no response.
func (s *scene) try(method, path string, body any, change ...func(*http.Request)) (answer, error) {
	var sent io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		sent = strings.NewReader(body)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		sent = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), hung)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.server.Address()+path, sent)
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(r)
	}
	got, err := s.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return answer{s.t, method + " " + path, got.StatusCode, got.Header, text}, err
}

// want checks the status and the error code.
func (a answer) want(status int, code ...lockkeeper.Code) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d instead of %d: %.600s", a.asked, a.status, status, a.body)
	}
	if len(code) == 0 {
		return a
	}
	var p Problem
	if err := json.Unmarshal(a.body, &p); err != nil || p.Error.Code != code[0] || p.Error.Message == "" {
		a.t.Fatalf("%s: not the error %s: %v %.600s", a.asked, code[0], err, a.body)
	}
	return a
}

// has checks that the body contains all parts.
func (a answer) has(parts ...string) answer {
	a.t.Helper()
	for _, part := range parts {
		if !strings.Contains(string(a.body), part) {
			a.t.Errorf("%s: no %q in %.2000s", a.asked, part, a.body)
		}
	}
	return a
}

// into decodes the body as JSON.
func (a answer) into(value any) answer {
	a.t.Helper()
	if err := json.Unmarshal(a.body, value); err != nil {
		a.t.Fatalf("%s: %v: %.600s", a.asked, err, a.body)
	}
	return a
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

const ok = http.StatusOK

// login logs a person in as a browser does, and returns a function that adds the session to a
// request.
func (s *scene) login(who access.Person) func(*http.Request) {
	s.t.Helper()
	ticket, err := s.People.Ticket(s.t.Context(), who, time.Now())
	must(s.t, err)
	a := s.send("POST", "/login", "secret="+ticket, s.sameOrigin, header("Content-Type", "application/x-www-form-urlencoded")).want(http.StatusSeeOther)
	cookies := (&http.Response{Header: a.header}).Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		s.t.Fatalf("cookies: %v", cookies)
	}
	return func(r *http.Request) { r.AddCookie(cookies[0]) }
}

// member returns a person who logs in by tickets.
func (s *scene) member(name string, role access.Role) access.Person {
	s.t.Helper()
	p, err := s.People.Member(s.t.Context(), name, role)
	must(s.t, err)
	return p
}

// sameOrigin adds the headers that a browser sends from a page of this server.
func (s *scene) sameOrigin(r *http.Request) {
	r.Header.Set("Origin", s.server.Address())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
}

// taken acquires paths for a caller with a role, and returns the grant.
func (s *scene) taken(role access.Role, paths ...string) given {
	s.t.Helper()
	var g given
	s.as(role, "POST", "/api/v1/grants", map[string]any{"write": paths}).want(ok).into(&g)
	return g
}

// audited advances a unit of the flow "controllers" until its items need decisions.
func (s *scene) audited(unit string, words ...string) {
	s.t.Helper()
	projecttest.Audited(s.t, projecttest.Tracker(s.t, s.App), unit, words...)
}

// planned advances a unit with two items to an unapproved plan of two batches.
func (s *scene) planned(unit string, targets ...string) {
	s.t.Helper()
	projecttest.Planned(s.t, projecttest.Tracker(s.t, s.App), unit, targets...)
}

// pruneTo prunes the log to keep events.
func pruneTo(keep int) func(*lock.Tx) error {
	return func(a *lock.Tx) error {
		for range 50 { // each call does a bounded amount of work
			if err := a.Prune(a.Now().Wall.Add(-24*time.Hour), keep); err != nil {
				return err
			}
		}
		return nil
	}
}
