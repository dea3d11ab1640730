package mcp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/access"
	"lockkeeper/rescue"
)

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// A real client uses every tool and resource, over the streams of a real process and over
// HTTP, while another session holds files.
//
// shows: DL-72 SW-42 PL-44 CF-14
func TestEveryTool(t *testing.T) {
	for name, connect := range map[string]func(*scene) (one, other *client){
		"stdio": func(s *scene) (*client, *client) { return s.stdio("one"), s.stdio("other") },
		"http": func(s *scene) (*client, *client) {
			address := s.serve()
			return s.http("one", address, s.token("one", access.Agent)), s.http("other", address, s.token("other", access.Agent))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			one, other := connect(s)
			tour(s, one, other)
		})
	}
}

func tour(s *scene, one, other *client) {
	t := s.t
	list, err := one.ListTools(t.Context(), nil)
	must(t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.OutputSchema == nil || tool.Description == "" {
			t.Errorf("%s says too little of itself", tool.Name)
		}
	}
	slices.Sort(names)
	if want := []string{"ask_for_more", "check", "claim", "commit", "defer", "release", "replace_dir", "report_gap", "status", "why", "write"}; !slices.Equal(names, want) {
		t.Fatalf("the tools are %v", names)
	}

	if a := one.call("check", args{"paths": []string{"app/user.rb"}}).fine("app/user.rb: free"); !a.value.Free {
		t.Error("it is not free")
	}
	first := one.call("claim", args{"paths": []string{"app/user.rb", "app/new.rb"}, "about": "rate-limit login"}).fine("CLAIMED", "app/user.rb")
	if !slices.Equal(first.value.Claimed, []string{"app/user.rb", "app/new.rb"}) {
		t.Errorf("claimed %v", first.value.Claimed)
	}
	me := first.value.Callsign
	no := other.call("claim", args{"paths": []string{"app/post.rb", "app/user.rb"}}).not("REFUSED app/user.rb: held by "+me, `"rate-limit login"`, "Do not retry", "ticket", "lockkeeper defer")
	if len(no.value.Refused) != 1 || no.value.Refused[0].Ticket == 0 || len(no.value.Holds) != 0 {
		t.Errorf("%+v", no.value)
	}
	other.call("check", args{"paths": []string{filepath.Join(s.Root, "app/user.rb")}}).fine("held by " + me)
	other.call("status", nil).fine("hold nothing", me+" holds app/")
	other.call("why", args{"path": "app/user.rb"}).fine("held by "+me, "recent events:", "acquired")
	one.call("why", args{"path": "app/user.rb"}).fine("is yours")

	was := s.read("app/user.rb")
	one.call("write", args{"path": "app/user.rb", "text": "lost\n"}).not("REFUSED", "you have not read it", "base")
	one.call("write", args{"path": "app/user.rb", "text": "lost\n", "base": sumOf("something else")}).not("app/user.rb")
	if s.read("app/user.rb") != was {
		t.Fatal("it was written")
	}
	if a := one.call("write", args{"path": "app/user.rb", "text": "class User; end\n", "base": sumOf(was)}).fine("WROTE app/user.rb", "landing"); !a.value.Landed || s.read("app/user.rb") != "class User; end\n" {
		t.Errorf("%+v", a.value)
	}
	one.call("write", args{"path": "app/user.rb", "text": "class User; end # 2\n"}).fine("WROTE") // a session knows the content that it wrote
	one.call("write", args{"path": "app/new.rb", "base64": "/wA="}).fine("WROTE")
	if s.read("app/new.rb") != "\xff\x00" {
		t.Errorf("it holds %q", s.read("app/new.rb"))
	}
	one.call("write", args{"path": "app/new.rb", "delete": true}).fine("WROTE")
	other.call("write", args{"path": "app/user.rb", "text": "mine\n", "base": sumOf("x")}).not("REFUSED app/user.rb: held by " + me)

	diff := "--- a/app/user.rb\n+++ b/app/user.rb\n@@ -1 +1,2 @@\n class User; end # 2\n+# deferred\n"
	other.call("defer", args{"path": "app/user.rb", "patch": diff}).fine("DEFERRED app/user.rb")
	other.call("defer", args{"path": "app/user.rb"}).not("a patch or the content")
	other.call("defer", args{"path": "app/user.rb", "content": "mine\n"}).not("has not read it", "send a unified diff")
	other.call("defer", args{"path": "elsewhere.rb", "content": "mine\n"}).not("allowlist")
	one.call("release", nil).fine("Released", "app/user.rb")
	told := other.call("status", nil).fine("FREE app/user.rb (ticket", "LANDED your deferred patch of app/user.rb")
	if len(told.value.News) != 2 {
		t.Errorf("news: %q", told.value.News)
	}
	if now := s.read("app/user.rb"); now != "class User; end # 2\n# deferred\n" {
		t.Errorf("it holds %q", now)
	}
	if again := other.call("status", nil).fine(); len(again.value.News) != 0 {
		t.Errorf("told twice: %q", again.value.News)
	}
	more(s, other)
	resources(s, one)
	patterns(s, one)
}

// more calls ask_for_more. The grant does not change: the call records a gap, and an item that waits for a
// person.
func more(s *scene, c *client) {
	t := s.t
	c.call("claim", args{"paths": []string{"app/post.rb"}}).fine()
	gap := c.call("report_gap", args{"path": "app/mailer.rb", "reason": "posts are mailed"}).fine("RECORDED", "app/mailer.rb")
	a := c.call("ask_for_more", args{"paths": []string{"app/user.rb", "app/mailer.rb"}, "reason": "the names changed"}).fine("ASKED", "waits for a person", "claims have not changed")
	again := c.call("ask_for_more", args{"paths": []string{"app/mailer.rb", "app/user.rb"}, "reason": "the names changed"}).fine()
	if a.value.Item == "" || again.value.Item != a.value.Item {
		t.Errorf("asked as %q, and again as %q", a.value.Item, again.value.Item)
	}
	c.call("status", nil).fine("hold app/post.rb.")
	q, err := job.Open(s.App)
	must(t, err)
	items, err := q.Items(t.Context(), []string{a.value.Item})
	must(t, err)
	if len(items) != 1 || items[0].Status != lockkeeper.ItemError || len(items[0].Locks) != 2 || !strings.Contains(items[0].Failure.Reason, "the names changed") {
		t.Errorf("the follow-up is %+v", items)
	}
	kept, err := s.App.Shelf().List(t.Context())
	must(t, err)
	gaps := map[string]int{}
	for _, e := range kept {
		if e.Kind == rescue.Gap {
			gaps[e.Path]++
		}
	}
	if gaps["app/mailer.rb"] != 2 || gaps["app/user.rb"] == 0 || !slices.ContainsFunc(kept, func(e rescue.Entry) bool { return e.ID == gap.value.Rescue }) {
		t.Errorf("the gaps are %v", gaps)
	}
	c.call("release", nil).fine()
}

// patterns checks that a pattern is refused, and that an existing name with such characters is none.
func patterns(s *scene, c *client) {
	t := s.t
	must(t, os.WriteFile(filepath.Join(s.App.Root.Dir(), "app", "[id].rb"), nil, 0o644))
	for _, path := range []string{"*", "app/*.rb", "app/?.rb", filepath.Join(s.App.Root.Dir(), "app/**")} {
		c.call("claim", args{"paths": []string{path}}).not("a pattern", "list the files")
		c.call("check", args{"paths": []string{path}}).not("a pattern")
		c.call("write", args{"path": path, "text": "x"}).not("a pattern")
	}
	c.call("claim", args{"paths": []string{"app/[id].rb", "app/[name].rb"}}).fine("CLAIMED", "app/[id].rb", "app/[name].rb")
	c.call("release", nil).fine()
}

func resources(s *scene, c *client) {
	t := s.t
	c.call("write", args{"path": "app/two words%.rb", "text": "x"}).fine()
	c.call("write", args{"path": "app/two words%.rb", "delete": true}).fine()
	c.call("release", nil).fine()
	for uri, word := range map[string]string{"lockkeeper://state": "active_grants", "lockkeeper://audit": "released", "lockkeeper://audit/app/user.rb": "landed", "lockkeeper://audit/app/two%20words%25.rb": "write app/two words%.rb"} {
		r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		must(t, err)
		if len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, word) || r.Contents[0].MIMEType != "application/json" {
			t.Errorf("%s: %+v", uri, r)
		}
	}
	for _, uri := range []string{"lockkeeper://nothing", "lockkeeper://audit/../../etc/passwd", "lockkeeper://audit/%2e%2e/etc/passwd", "lockkeeper://audit/app/%zz", "file:///etc/passwd"} {
		if r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s: %+v", uri, r)
		}
	}
}

// The claims of an agent are released when it ends, over either transport.
func TestEndGivesBack(t *testing.T) {
	s := newScene(t)
	one, two := s.stdio("one"), s.http("two", s.serve(), s.token("two", access.Agent))
	one.call("claim", args{"paths": []string{"app/user.rb"}}).fine()
	two.call("claim", args{"paths": []string{"app/post.rb"}}).fine()
	must(t, one.Close(), two.Close())
	sess, err := session.Open(s.App).Enter(t.Context(), session.Caller{ID: "x", Agent: "test"})
	must(t, err)
	defer sess.Close()
	for { // over HTTP the claim is released just after the answer
		found, err := sess.Blockers(t.Context(), "app/user.rb", "app/post.rb")
		must(t, err)
		if len(found) == 0 {
			return
		}
		if slices.ContainsFunc(found, func(o session.Blocker) bool { return o.Path == "app/user.rb" }) {
			t.Fatalf("still blocked: %+v", found)
		}
	}
}

// If an agent ends its server with a signal while its input is open, no lock stays held.
func TestSignalGivesBack(t *testing.T) {
	s := newScene(t)
	cmd := s.Command(t, "mcp")
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	must(t, err, cmd.Start())
	c := s.connect("told", &mcp.IOTransport{Reader: out, Writer: in})
	c.call("claim", args{"paths": []string{"app/user.rb"}}).fine()
	must(t, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	grants, err := s.App.Locks.ActiveGrants(t.Context())
	must(t, err)
	if len(grants) > 0 {
		t.Errorf("left: %+v", grants)
	}
}

// The hooks and the MCP server of one agent are one session, whichever started first.
func TestOneWindowIsOneSession(t *testing.T) {
	s := newScene(t)
	registry := session.Open(s.App)
	c := s.stdio("claude-code")
	first := c.call("claim", args{"paths": []string{"app/user.rb"}, "about": "names"}).fine()
	list, err := registry.Live(t.Context())
	must(t, err)
	if len(list) != 1 || list[0].Process == nil {
		t.Fatalf("there are %+v", list)
	}
	window := list[0].Process
	if self, err := process.Self(); err != nil || window.PID == self.PID {
		t.Fatalf("the window is the test itself: %+v", window)
	}

	hooks := session.Caller{ID: "abc", Agent: "claude-code", Process: window}
	sess, err := registry.Enter(t.Context(), hooks)
	must(t, err)
	holds, err := sess.Holds(t.Context())
	must(t, err)
	if who := sess.Info(); who.Callsign != first.value.Callsign || !slices.Equal(holds, []string{"app/user.rb"}) {
		t.Errorf("the hooks are %+v, and hold %v", who, holds)
	}
	must(t, sess.Close())
	if a := c.call("claim", args{"paths": []string{"app/post.rb"}}).fine(); a.value.Callsign != first.value.Callsign || !slices.Equal(a.value.Holds, []string{"app/post.rb", "app/user.rb"}) {
		t.Errorf("it joined as %+v", a.value)
	}
	// The hooks release their own claims.
	must(t, c.Close())
	if sess, err = registry.Enter(t.Context(), hooks); err != nil {
		t.Fatal(err)
	}
	holds, err = sess.Holds(t.Context())
	must(t, err, sess.Leave(t.Context(), false))
	if !slices.Equal(holds, []string{"app/post.rb", "app/user.rb"}) {
		t.Errorf("the hooks hold %v", holds)
	}
}

// If many sessions claim one file at once, one gets it, and the others are told who holds it.
func TestOneOfMany(t *testing.T) {
	s := newScene(t)
	address := s.serve()
	var clients []*client
	for i := range 12 {
		name := fmt.Sprint("agent-", i)
		clients = append(clients, s.http(name, address, s.token(name, access.Agent)))
	}
	answers := make([]*mcp.CallToolResult, len(clients))
	errs := make([]error, len(clients))
	var done sync.WaitGroup
	for i, c := range clients {
		done.Go(func() {
			answers[i], errs[i] = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "claim", Arguments: args{"paths": []string{"app/user.rb"}}})
		})
	}
	done.Wait()
	must(t, errs...)
	won := 0
	for _, a := range answers {
		if text := a.Content[0].(*mcp.TextContent).Text; !a.IsError {
			won++
		} else if !strings.Contains(text, "REFUSED app/user.rb: held by") {
			t.Errorf("told %q", text)
		}
	}
	if won != 1 {
		t.Errorf("%d have it", won)
	}
}

// In a directory without locks, the server has no tools and says why. If the locks existed and are missing, it
// fails.
func TestNowhere(t *testing.T) {
	s := newScene(t)
	start := func(dir string) (*mcp.ClientSession, error) {
		cmd := exec.Command(s.Program(t), "mcp")
		cmd.Dir, cmd.Env = dir, s.Env
		return mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: 20 * time.Second}, nil)
	}
	c, err := start(t.TempDir())
	must(t, err)
	tools, err := c.ListTools(t.Context(), nil)
	if err == nil && len(tools.Tools) > 0 || !strings.Contains(c.InitializeResult().Instructions, "has no locks") {
		t.Errorf("%+v %v, %q", tools, err, c.InitializeResult().Instructions)
	}
	must(t, c.Close(), os.Rename(filepath.Join(s.Root, ".lockkeeper"), filepath.Join(s.Dir, "lost")))
	if c, err := start(s.Root); err == nil {
		t.Error("locks that are gone pass for none")
		c.Close()
	}
	must(t, os.Rename(filepath.Join(s.Dir, "lost"), filepath.Join(s.Root, ".lockkeeper")))
}
