package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/machine/machinetest"
)

// toolArg makes the test binary act as a tool inside a sandbox.
const toolArg = "@test-tool"

func TestMain(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == toolArg {
		os.Exit(tool())
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each confined command takes a second longer
	goleak.VerifyTestMain(m)
}

// tool sends every kind of request and prints the paths that it may write.
func tool() int {
	client, ok := FromEnviron(os.Getenv)
	if !ok {
		fmt.Println("no supervisor")
		return 1
	}
	ctx := context.Background()
	view, err := client.Grant(ctx)
	err = errors.Join(err, client.Gap(ctx, "app/other.rb", "it needs a new field"))
	fmt.Println(view.Write, err)
	if err != nil {
		return 1
	}
	return 0
}

// A recorder records the requests it gets.
type recorder struct {
	mu    sync.Mutex
	said  []string
	grant func(context.Context) (GrantView, error)
}

func (d *recorder) Grant(ctx context.Context) (GrantView, error) { return d.grant(ctx) }

func (d *recorder) Gap(_ context.Context, path, reason string) error {
	if path == "/etc/passwd" {
		return &lockkeeper.InputError{Field: "path", Value: path, Reason: "outside of the tree"}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = append(d.said, path+": "+reason)
	return nil
}

var until = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func newRecorder() *recorder {
	return &recorder{grant: func(context.Context) (GrantView, error) {
		return GrantView{ID: "g-1", Holder: "otter", Write: []string{"app/a.rb"}, Read: []string{"app"}, Until: &until}, nil
	}}
}

// serve runs a server until the test ends, or stop is called.
func serve(t *testing.T, d Handler) (s *Server, stop func()) {
	t.Helper()
	s, err := Listen(t.TempDir(), d)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return s, stop
}

// lookup returns a function that reads an environment.
func lookup(env []string) func(string) string {
	return func(name string) string {
		for _, v := range env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func clientOf(t *testing.T, s *Server) *Client {
	t.Helper()
	c, ok := FromEnviron(lookup(s.Environ()))
	if !ok {
		t.Fatal("no client")
	}
	return c
}

// shows: SW-75
func TestConversation(t *testing.T) {
	d := newRecorder()
	s, _ := serve(t, d)
	c := clientOf(t, s)
	view, err := c.Grant(t.Context())
	if err != nil || view.ID != "g-1" || !slices.Equal(view.Write, []string{"app/a.rb"}) || !view.Until.Equal(until) {
		t.Errorf("%+v, %v", view, err)
	}
	if err := c.Gap(t.Context(), "app/b.rb", "needed"); err != nil {
		t.Error(err)
	}
	if want := []string{"app/b.rb: needed"}; !slices.Equal(d.said, want) {
		t.Errorf("%q", d.said)
	}
	if _, ok := FromEnviron(lookup(nil)); ok {
		t.Error("found a supervisor that is not there")
	}
}

// An invalid request is refused with a reason and does not reach the Handler.
func TestRefusals(t *testing.T) {
	d := newRecorder()
	s, _ := serve(t, d)
	c := clientOf(t, s)
	stranger := clientOf(t, s)
	stranger.token = "guessed"
	nameless := clientOf(t, s)
	nameless.token = ""
	ctx := t.Context()
	for name, test := range map[string]struct {
		err  error
		code lockkeeper.Code
	}{
		"wrong token":     {stranger.Gap(ctx, "a", "why"), lockkeeper.CodeRefused},
		"no token":        {nameless.Gap(ctx, "a", "why"), lockkeeper.CodeRefused},
		"handler":         {c.Gap(ctx, "/etc/passwd", "why not"), lockkeeper.CodeInput},
		"no path":         {c.Gap(ctx, "", "why"), lockkeeper.CodeInput},
		"no reason":       {c.Gap(ctx, "a", " "), lockkeeper.CodeInput},
		"NUL":             {c.Gap(ctx, "a\x00", "why"), lockkeeper.CodeInput},
		"long path":       {c.Gap(ctx, strings.Repeat("a", maxText+1), "why"), lockkeeper.CodeInput},
		"long reason":     {c.Gap(ctx, "a", strings.Repeat("a", maxText+1)), lockkeeper.CodeInput},
		"endless reason":  {c.Gap(ctx, "a", strings.Repeat("a", 2*maxBody)), lockkeeper.CodeInput},
		"unknown field":   {c.call(ctx, http.MethodPost, "/gaps", map[string]string{"path": "a", "reason": "x", "write": "y"}, nil), lockkeeper.CodeInput},
		"unknown route":   {c.call(ctx, http.MethodGet, "/store", nil, nil), lockkeeper.CodeFailed},
		"writing a grant": {c.call(ctx, http.MethodPost, "/grant", GrantView{}, nil), lockkeeper.CodeFailed},
	} {
		if lockkeeper.CodeOf(test.err) != test.code || test.err == nil {
			t.Errorf("%s: %v", name, test.err)
		}
	}
	if len(d.said) > 0 {
		t.Errorf("it was recorded: %q", d.said)
	}
}

func TestRecordsAreBounded(t *testing.T) {
	d := newRecorder()
	s, _ := serve(t, d)
	c := clientOf(t, s)
	s.records.Store(maxRecords - 1)
	if err := c.Gap(t.Context(), "a", "the last"); err != nil {
		t.Error(err)
	}
	if err := c.Gap(t.Context(), "a", "one more"); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("%v", err)
	}
	if _, err := c.Grant(t.Context()); err != nil {
		t.Error(err)
	}
}

// Silent callers occupy slots but do no other harm.
func TestSilentCallersAreBounded(t *testing.T) {
	s, stop := serve(t, newRecorder())
	var conns []net.Conn
	for range maxConnections {
		conn, err := net.Dial("unix", s.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := clientOf(t, s).Grant(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one too many was let in: %v", err)
	}
	conns[0].Close()
	if _, err := clientOf(t, s).Grant(t.Context()); err != nil {
		t.Error(err)
	}
	stop() // does not wait for silent callers
	for _, conn := range conns[1:] {
		if rest, err := io.ReadAll(conn); len(rest) > 0 && !bytes.HasPrefix(rest, []byte("HTTP/1.1 4")) {
			t.Errorf("%q, %v", rest, err)
		}
		conn.Close()
	}
}

// A request in progress ends with the server, and the socket is removed.
func TestStopsWithItsOwner(t *testing.T) {
	d := newRecorder()
	entered := make(chan struct{})
	var left bool
	d.grant = func(ctx context.Context) (GrantView, error) {
		close(entered)
		<-ctx.Done()
		left = true
		return GrantView{}, ctx.Err()
	}
	s, stop := serve(t, d)
	c := clientOf(t, s)
	answered := make(chan error, 1)
	go func() { _, err := c.Grant(context.Background()); answered <- err }()
	<-entered
	stop()
	if !left {
		t.Error("a request is still under way")
	}
	if err := <-answered; err == nil {
		t.Error("answered without an answer")
	}
	if _, err := os.Lstat(s.listener.Addr().String()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	if _, err := c.Grant(t.Context()); err == nil {
		t.Error("it still answers")
	}
}

func TestListenRefuses(t *testing.T) {
	if _, err := Listen(filepath.Join(t.TempDir(), strings.Repeat("long", 30)), newRecorder()); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("%v", err)
	}
	if _, err := Listen(filepath.Join(t.TempDir(), "missing"), newRecorder()); err == nil {
		t.Error("listens nowhere")
	}
}

// Tools inside a sandbox reach their supervisor.
//
// shows: GP-5 SW-75
func TestFromInsideASandbox(t *testing.T) {
	level, err := sandbox.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !level.On() {
		machinetest.Lacks(t, "no sandbox here: %s", level.Missing)
	}
	d := newRecorder()
	s, _ := serve(t, d)
	workspace, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	argv, err := sandbox.Wrap(level, sandbox.Confinement{Write: []string{workspace}, Read: []string{s.listener.Addr().String()}}, []string{"/proc/self/exe", toolArg})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = workspace, append(sandbox.Environ(os.Environ(), workspace), s.Environ()...), os.Stderr
	if said, err := cmd.Output(); err != nil || string(said) != "[app/a.rb] <nil>\n" {
		t.Errorf("%q, %v", said, err)
	}
	if len(d.said) != 1 {
		t.Errorf("%q", d.said)
	}
}

// Connections of other users are closed unread.
func TestOtherUsersAreNotHeard(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can play another user")
	}
	d := newRecorder()
	dir, err := os.MkdirTemp("", "lk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s, err := Listen(dir, d)
	if err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o777, s.listener.Addr().String(): 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	for uid, heard := range map[uint32]bool{0: true, 65534: false} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", toolArg)
		cmd.Env = append(os.Environ(), s.Environ()...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		if said, err := cmd.Output(); (err == nil) != heard {
			t.Errorf("user %d: %s, %v", uid, said, err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
