package lsp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli"
	"lockkeeper/internal/surface/lsp"
)

// TestMain lets the test binary act as the lockkeeper program when an editor starts it under that
// name, and checks that no goroutine is left.
func TestMain(m *testing.M) {
	projecttest.Main(m, projecttest.Program{Name: projecttest.Lockkeeper, Main: cli.Process})
}

var must = projecttest.Must

// newBlog returns a codebase with locks.
func newBlog(t *testing.T) *projecttest.Codebase {
	t.Helper()
	files := map[string]string{"app/user.rb": "class User\nend\n", "app/post.rb": "class Post\nend\n", "app/a b#?%é\nc.rb": "odd\n"}
	return projecttest.Empty(t, "gate:\n  allowed_write_paths: [app]\n").With(t, files).Codebase(t)
}

// otter is an interactive agent that holds files.
type otter struct {
	t  *testing.T
	in *session.Registry
}

func newOtter(t *testing.T, a *project.Project) otter { return otter{t, session.Open(a)} }

// call makes one call of the session.
func (o otter) call(do func(ctx context.Context, s *session.Session)) {
	o.t.Helper()
	self, err := process.Self()
	must(o.t, err)
	s, err := o.in.Enter(o.t.Context(), session.Caller{ID: "one", Agent: "claude-code", TTY: "pts/3", About: "rate-limit login", Process: &self})
	must(o.t, err)
	do(o.t.Context(), s)
	must(o.t, s.Close())
}

func (o otter) claim(path string) (callsign string) {
	o.t.Helper()
	o.call(func(ctx context.Context, s *session.Session) {
		refused, err := s.Claim(ctx, session.Write{Path: path})
		must(o.t, err)
		if len(refused) > 0 {
			o.t.Fatalf("claim %s: %v", path, refused)
		}
		callsign = s.Info().Callsign
	})
	return callsign
}

// refused reports whether the session is refused a path.
func (o otter) refused(path string) (refused bool) {
	o.t.Helper()
	o.call(func(ctx context.Context, s *session.Session) {
		list, err := s.Claim(ctx, session.Write{Path: path})
		must(o.t, err)
		refused = len(list) > 0
	})
	return refused
}

func (o otter) release() {
	o.t.Helper()
	o.call(func(ctx context.Context, s *session.Session) { must(o.t, s.Release(ctx)) })
}

func (o otter) news() (list []string) {
	o.t.Helper()
	o.call(func(ctx context.Context, s *session.Session) {
		var err error
		list, err = s.News(ctx)
		must(o.t, err)
	})
	return list
}

// A message is one that the server sent.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// An editor talks to a server in this process.
type editor struct {
	t     *testing.T
	to    io.WriteCloser
	from  chan message
	ended chan error
	calls int
}

func newEditor(t *testing.T, env []string, id string) *editor {
	t.Helper()
	person := lockkeeper.Actor{Name: "ann", Kind: lockkeeper.ActorPerson}
	by, err := author.InstanceOf(env, "", id, person)
	must(t, err)
	lookup := projecttest.Lookup(env)
	in, to := io.Pipe()
	out, from := io.Pipe()
	e := &editor{t: t, to: to, from: make(chan message, 1_000), ended: make(chan error, 1)}
	s := lsp.New(lsp.Options{Env: env, Lookup: lookup, Claimant: by, Person: person, Version: "1", Now: time.Now,
		Open: func(ctx context.Context, root string) (*project.Project, error) {
			return project.Open(ctx, project.Settings{Dir: root, Env: lookup})
		}})
	go func() {
		err := s.Serve(t.Context(), in, from)
		from.Close()
		e.ended <- err
	}()
	go e.receive(out)
	t.Cleanup(func() { to.Close() })
	return e
}

// start is newEditor after the initial handshake.
func start(t *testing.T, env []string, id string) *editor {
	t.Helper()
	e := newEditor(t, env, id)
	if r := e.call("initialize", map[string]any{"capabilities": map[string]any{}}); r.Error != nil || !strings.Contains(string(r.Result), "lockkeeper.claim") {
		t.Fatalf("initialize: %+v", r)
	}
	e.notify("initialized", map[string]any{})
	return e
}

func (e *editor) receive(out io.Reader) {
	defer close(e.from)
	for r := textproto.NewReader(bufio.NewReader(out)); ; {
		header, err := r.ReadMIMEHeader()
		if err != nil {
			return
		}
		size, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			return
		}
		text := make([]byte, size)
		var m message
		if _, err := io.ReadFull(r.R, text); err != nil || json.Unmarshal(text, &m) != nil {
			return
		}
		e.from <- m
	}
}

func (e *editor) send(text string) {
	e.t.Helper()
	_, err := fmt.Fprintf(e.to, "Content-Length: %d\r\n\r\n%s", len(text), text)
	must(e.t, err)
}

func (e *editor) notify(method string, params any) {
	e.t.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	must(e.t, err)
	e.send(string(text))
}

// next returns the next message that fits, and skips others.
func (e *editor) next(what string, fits func(message) bool) message {
	e.t.Helper()
	limit := time.After(time.Minute)
	var skipped []string
	for {
		select {
		case m, ok := <-e.from:
			if !ok {
				e.t.Fatalf("the server ended before %s; before: %s", what, skipped)
			}
			if fits(m) {
				return m
			}
			skipped = append(skipped, fmt.Sprintf("%s %s", m.Method, m.Params))
		case <-limit:
			e.t.Fatalf("no %s; before: %s", what, skipped)
		}
	}
}

// call sends a request and returns the response. Notifications before it are skipped.
func (e *editor) call(method string, params any) message {
	e.t.Helper()
	e.calls++
	id := e.calls
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	must(e.t, err)
	e.send(string(text))
	return e.next("response to "+method, func(m message) bool { return m.Method == "" && m.ID == id })
}

// hears waits for a notification that contains all words.
func (e *editor) hears(method string, words ...string) message {
	e.t.Helper()
	return e.next(fmt.Sprint(method, words), func(m message) bool {
		if m.Method != method {
			return false
		}
		for _, w := range words {
			if !strings.Contains(string(m.Params), w) {
				return false
			}
		}
		return true
	})
}

const (
	published = "textDocument/publishDiagnostics"
	shown     = "window/showMessage"
	written   = "window/logMessage"
)

func uriOf(file string) string { return (&url.URL{Scheme: "file", Path: file}).String() }

func document(uri string) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": uri}}
}

func (e *editor) open(uri string)  { e.t.Helper(); e.notify("textDocument/didOpen", document(uri)) }
func (e *editor) edit(uri string)  { e.t.Helper(); e.notify("textDocument/didChange", document(uri)) }
func (e *editor) save(uri string)  { e.t.Helper(); e.notify("textDocument/didSave", document(uri)) }
func (e *editor) close(uri string) { e.t.Helper(); e.notify("textDocument/didClose", document(uri)) }

// titles returns the titles of the code actions.
func (e *editor) titles(uri string) string {
	e.t.Helper()
	r := e.call("textDocument/codeAction", map[string]any{"textDocument": map[string]any{"uri": uri}, "context": map[string]any{"diagnostics": []any{}}})
	var actions []struct {
		Title string `json:"title"`
	}
	must(e.t, json.Unmarshal(r.Result, &actions))
	var titles []string
	for _, a := range actions {
		titles = append(titles, a.Title)
	}
	return strings.Join(titles, ", ")
}

// run sends a command without waiting for the response, so that the test sees the messages that
// come before the response.
func (e *editor) run(name, uri string) {
	e.t.Helper()
	e.calls++
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": e.calls, "method": "workspace/executeCommand", "params": map[string]any{"command": name, "arguments": []string{uri}}})
	must(e.t, err)
	e.send(string(text))
}

// end ends the server as editors do.
func (e *editor) end() {
	e.t.Helper()
	e.call("shutdown", nil)
	e.notify("exit", nil)
	must(e.t, <-e.ended)
}

// in returns a file of a codebase.
func in(o *projecttest.Codebase, path string) string { return filepath.Join(o.Root, path) }

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return string(text)
}
