package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/cli"
)

// TestMain lets the test binary act as the lockkeeper program when it is started under that name.
func TestMain(m *testing.M) {
	projecttest.Main(m, projecttest.Program{Name: projecttest.Lockkeeper, Main: cli.Process})
}

var must = projecttest.Must

// A scene is a codebase with its locks, and a program that serves it.
type scene struct {
	*projecttest.Codebase
	t *testing.T
}

func newScene(t *testing.T) *scene {
	t.Helper()
	p := projecttest.Empty(t, "gate:\n  allowed_write_paths: [app]\n").With(t, map[string]string{"app/user.rb": "class User\nend\n", "app/post.rb": "class Post\nend\n"})
	return &scene{p.Codebase(t), t}
}

// token creates an account and returns its token.
func (s *scene) token(name string, role access.Role) string {
	s.t.Helper()
	return s.Token(s.t, name, role)
}

// read returns the content of a file in the codebase.
func (s *scene) read(path string) string {
	s.t.Helper()
	return s.Read(s.t, path)
}

// serve starts `lockkeeper serve` until the test ends, and returns its address.
func (s *scene) serve() (address string) {
	s.t.Helper()
	address, end := s.Serve(s.t, "127.0.0.1:0")
	s.t.Cleanup(end)
	return address
}

// A client is a real MCP client with a session.
type client struct {
	t *testing.T
	*mcp.ClientSession
}

func (s *scene) connect(name string, transport mcp.Transport) *client {
	s.t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, nil).Connect(s.t.Context(), transport, nil)
	must(s.t, err)
	c := &client{s.t, session}
	s.t.Cleanup(func() { session.Close() }) // the test may have closed it already
	return c
}

// stdio starts `lockkeeper mcp` and connects to it. The shell in between makes each client a separate agent
// session. Without it, all clients would share the session of the test process.
func (s *scene) stdio(name string) *client {
	s.t.Helper()
	cmd := exec.Command("sh", s.windowScript(), s.Program(s.t), "mcp")
	cmd.Dir, cmd.Env, cmd.Stderr = s.Root, s.Env, os.Stderr
	return s.connect(name, &mcp.CommandTransport{Command: cmd, TerminateDuration: 20 * time.Second})
}

// windowScript creates a script that acts as the agent: it starts the server and waits for it.
func (s *scene) windowScript() string {
	s.t.Helper()
	name := filepath.Join(s.Dir, "agent.sh")
	must(s.t, os.WriteFile(name, []byte("\"$@\"\nexit $?\n"), 0o644))
	return name
}

// http connects to a server with a token.
func (s *scene) http(name, address, token string) *client {
	s.t.Helper()
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	return s.connect(name, &mcp.StreamableClientTransport{Endpoint: address + "/mcp", HTTPClient: &http.Client{Transport: bearer{transport, token}}})
}

// bearer sends a token with every request.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// said is the answer of a tool.
type said struct {
	t     *testing.T
	asked string
	text  string
	wrong bool
	value struct {
		Text     string            `json:"text"`
		Callsign string            `json:"callsign"`
		Refused  []refusal.Refusal `json:"refused"`
		Failed   *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"failed"`
		News    []string `json:"news"`
		Claimed []string `json:"claimed"`
		Holds   []string `json:"holds"`
		Free    bool     `json:"free"`
		Landed  bool     `json:"landed"`
		State   string   `json:"state"`
		Item    string   `json:"item"`
		Rescue  string   `json:"rescue"`
	}
}

type args = map[string]any

// call calls a tool.
func (c *client) call(name string, in args) said {
	c.t.Helper()
	if in == nil {
		in = args{}
	}
	r, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: name, Arguments: in})
	must(c.t, err)
	a := said{t: c.t, asked: fmt.Sprint(name, " ", in), wrong: r.IsError}
	for _, part := range r.Content {
		if text, ok := part.(*mcp.TextContent); ok {
			a.text += text.Text
		}
	}
	if r.StructuredContent != nil {
		text, err := json.Marshal(r.StructuredContent)
		must(c.t, err, json.Unmarshal(text, &a.value))
		if a.value.Text != a.text {
			c.t.Errorf("%s: %q as a value, and %q as text", a.asked, a.value.Text, a.text)
		}
	}
	return a
}

// fine requires success, and the words in the text.
func (a said) fine(words ...string) said {
	a.t.Helper()
	if a.wrong {
		a.t.Fatalf("%s: %s", a.asked, a.text)
	}
	return a.has(words...)
}

// not requires a refusal, and the words in the text.
func (a said) not(words ...string) said {
	a.t.Helper()
	if !a.wrong {
		a.t.Fatalf("%.300s was done: %s", a.asked, a.text)
	}
	return a.has(words...)
}

func (a said) has(words ...string) said {
	a.t.Helper()
	for _, w := range words {
		if !strings.Contains(a.text, w) {
			a.t.Errorf("%.300s does not say %q:\n%s", a.asked, w, a.text)
		}
	}
	return a
}
