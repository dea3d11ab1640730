//go:build agents

package agents_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockkeeper/internal/agent/scriptedapi"
)

// withServer returns the arguments that configure the MCP server of the codebase in Claude
// Code.
func (h *hooked) withServer(t *testing.T, server map[string]any) []string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"lockkeeper": server}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.root, "mcp.json")
	write(t, file, string(text))
	return []string{"--mcp-config", file, "--strict-mcp-config"}
}

// asked is one use of a tool, with the expected result.
type asked struct {
	tool scriptedapi.Tool
	want string // a regular expression
}

func lockTool(name string, input map[string]any, want string) asked {
	return asked{scriptedapi.Tool{Name: "mcp__lockkeeper__" + name, Input: input}, want}
}

// conversation returns a script that checks each answer before it uses the next tool.
func conversation(list ...asked) func(string) []scriptedapi.Play {
	var steps []scriptedapi.Step
	want := ""
	for _, a := range list {
		steps = append(steps, scriptedapi.Step{Expect: want, Tools: []scriptedapi.Tool{a.tool}})
		want = "(?s)" + a.want
	}
	return play(append(steps, scriptedapi.Step{Expect: want, Text: "I used them all."})...)
}

// The real Claude Code uses every MCP tool while its hooks are active. Both belong to one
// session, so its own tools can write files that an MCP tool claimed.
//
// shows: DL-72 SW-42
func TestClaudeUsesEveryTool(t *testing.T) {
	t.Parallel()
	one := func(path string) map[string]any { return map[string]any{"path": path} }
	several := func(path string) map[string]any { return map[string]any{"paths": []any{path}} }
	h := newHooked(t, conversation(
		lockTool("status", map[string]any{}, `You are \S+ and hold nothing.*rate-limit posts`),
		lockTool("check", several(posts), `app/posts\.rb: held by`),
		lockTool("claim", several(posts), `REFUSED app/posts\.rb: held by \S+ .*rate-limit posts`),
		lockTool("why", one(posts), `held by.*recent events`),
		asked{scriptedapi.Read("{dir}/" + posts), `class Posts`},
		lockTool("defer", map[string]any{"path": posts, "content": "class Posts # deferred\nend\n"}, `DEFERRED app/posts\.rb`),
		lockTool("claim", map[string]any{"paths": []any{users}, "about": "names"}, `CLAIMED`),
		asked{scriptedapi.Read("{dir}/" + users), `class Users`},
		asked{scriptedapi.Edit("{dir}/"+users, "class Users", "class Users # mine"), `updated`},
		lockTool("status", map[string]any{}, `hold app/users\.rb`),
		lockTool("write", map[string]any{"path": "app/models/note.rb", "text": "class Note; end\n"}, `WROTE app/models/note\.rb`),
		lockTool("report_gap", map[string]any{"path": "config/routes.rb", "reason": "a route is missing"}, `RECORDED`),
		lockTool("ask_for_more", map[string]any{"paths": []any{"config/routes.rb"}, "reason": "a route is missing"}, `ASKED.*waits for a person`),
		lockTool("release", map[string]any{}, `Released: app/models/note\.rb, app/users\.rb`),
		asked{scriptedapi.Tool{Name: "ReadMcpResourceTool", Input: map[string]any{"server": "lockkeeper", "uri": "lockkeeper://state"}}, `active_grants`},
	))
	h.holds(t, posts, "class Posts # otter\nend\n")
	res, err := h.claude(t.Context(), "Use the tools", filepath.Join(h.traces, "b"), h.withServer(t, map[string]any{"command": h.binary, "args": []string{"mcp"}})...)
	if err != nil || res.Text != "I used them all." {
		t.Fatalf("%v %q\n%s", err, res.Text, read(t, filepath.Join(h.traces, "b.jsonl")))
	}
	for file, want := range map[string]string{posts: "class Posts # otter\nend\n", users: "class Users # mine\nend\n", "app/models/note.rb": "class Note; end\n"} {
		if got := read(t, filepath.Join(h.dir, file)); got != want {
			t.Errorf("%s holds %q", file, got)
		}
	}
	if out, err := h.lockkeeper(nil, "status"); err != nil || strings.Contains(out, users) {
		t.Errorf("%v\n%s", err, out)
	}
}

// serve runs the server of the codebase until the test ends, and returns its URL.
func (h *hooked) serve(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(h.binary, "serve")
	cmd.Dir, cmd.Env = h.dir, h.environment()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// Over HTTP, Claude Code authenticates with a token and is a session like any other.
func TestClaudeOverHTTP(t *testing.T) {
	t.Parallel()
	h := newHooked(t, conversation(
		lockTool("claim", map[string]any{"paths": []any{posts}}, `REFUSED app/posts\.rb: held by`),
		lockTool("claim", map[string]any{"paths": []any{users}}, `CLAIMED`),
		lockTool("write", map[string]any{"path": "app/models/note.rb", "text": "class Note; end\n"}, `WROTE app/models/note\.rb`),
		lockTool("status", map[string]any{}, `hold app/models/note\.rb, app/users\.rb`),
	))
	// Must run before a session starts in this process, which counts as an agent's from then
	// on.
	token, err := h.lockkeeper(nil, "token", "add", "claude", "--role", "agent", "--json")
	if err != nil {
		t.Fatalf("%v %s", err, token)
	}
	var made struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(token), &made); err != nil {
		t.Fatalf("%v %s", err, token)
	}
	h.holds(t, posts, "class Posts # otter\nend\n")
	address := h.serve(t)
	res, err := h.claude(t.Context(), "Use the tools", filepath.Join(h.traces, "b"), h.withServer(t, map[string]any{"type": "http", "url": address + "/mcp",
		"headers": map[string]string{"Authorization": "Bearer " + made.Token}})...)
	if err != nil || res.Text != "I used them all." {
		t.Fatalf("%v %q\n%s", err, res.Text, read(t, filepath.Join(h.traces, "b.jsonl")))
	}
	if got := read(t, filepath.Join(h.dir, "app/models/note.rb")); got != "class Note; end\n" {
		t.Errorf("it holds %q", got)
	}
}
