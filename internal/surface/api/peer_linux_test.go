package api

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/machine/peer"
	"lockkeeper/internal/surface/access"
)

// confinedClient is the name under which the test program acts as an agent in a sandbox. Its arguments are the
// method and the URL, and it reads the headers from standard input.
const confinedClient = "confined-client"

func askConfined() int {
	if err := peer.Mark(); err != nil {
		fmt.Println(err)
		return 1
	}
	r, err := http.NewRequest(os.Args[1], os.Args[2], nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	said, err := io.ReadAll(os.Stdin)
	for line := range strings.Lines(string(said)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		r.Header.Set(name, value)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	client := http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := client.Do(r)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	fmt.Println(a.StatusCode, string(body), err)
	return 0
}

// confined sends a request from inside a sandbox, with the given headers.
func (s *scene) confined(method, path string, headers ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "/proc/self/exe", method, s.server.Address()+path)
	cmd.Args[0] = confinedClient
	cmd.Stdin = strings.NewReader(strings.Join(headers, "\n"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	must(s.t, cmd.Run())
	return out.String()
}

// An agent in a sandbox is refused on every route, even with an admin's secrets.
func TestAgentsInSandboxes(t *testing.T) {
	s := newScene(t)
	bearer := "Authorization: Bearer " + s.tokens[access.Admin]
	r, err := http.NewRequest("GET", s.server.Address(), nil)
	must(t, err)
	s.login(s.member("ann", access.Admin))(r)
	cookie := "Cookie: " + r.Header.Get("Cookie")
	for _, at := range [][]string{
		{"GET", "/api/v1/state", bearer}, {"GET", "/api/v1/me", cookie}, {"POST", "/api/v1/grants", bearer, "Content-Type: application/json"},
		{"POST", "/mcp", bearer}, {"GET", "/", cookie}, {"GET", "/login"}, {"GET", "/healthz"}, {"GET", "/nowhere", bearer},
		{"POST", "/login", "Content-Type: application/x-www-form-urlencoded"},
	} {
		if got := s.confined(at[0], at[1], at[2:]...); !strings.HasPrefix(got, "403 ") || !strings.Contains(got, "sandbox") {
			t.Errorf("%s: %s", at, got)
		}
	}
	got := s.confined("GET", "/api/v1/me", bearer)
	if !strings.Contains(got, `"code":"confined"`) || !strings.Contains(got, `"next":"finish your task`) {
		t.Errorf("it is not told what to do: %s", got)
	}
	s.as(access.Admin, "GET", "/api/v1/me", nil).want(ok) // a client outside a sandbox is still served
}

// A setting lets agents in sandboxes use their tokens.
func TestAgentsInSandboxesMayBeAdmitted(t *testing.T) {
	s := newScene(t, func(o *Options) { o.Clients = ClientsAny })
	if got := s.confined("GET", "/api/v1/me", "Authorization: Bearer "+s.tokens[access.Agent]); !strings.HasPrefix(got, "200 ") {
		t.Error(got)
	}
	if got := s.confined("GET", "/api/v1/me"); !strings.HasPrefix(got, "401 ") {
		t.Error(got)
	}
}
