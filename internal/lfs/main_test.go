package lfs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper/internal/access"
	"lockkeeper/internal/app"
	"lockkeeper/internal/cli"
)

// TestMain makes the test's own program, under its name, the one that is tested.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "lockkeeper" {
		io, err := cli.System()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(cli.Main(context.Background(), io, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// scene is a codebase with its locks, and a token for each of some people.
type scene struct {
	t      *testing.T
	dir    string // of all
	root   string // of the codebase
	env    []string
	app    *app.App
	tokens map[string]string // by name
}

func newScene(t *testing.T) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	s := &scene{t: t, dir: dir, root: filepath.Join(dir, "art"), tokens: map[string]string{}}
	s.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "state"), "GORACE=atexit_sleep_ms=0", "GIT_CONFIG_NOSYSTEM=1", "LANG=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_TERMINAL_PROMPT=0"}
	must(t, os.MkdirAll(filepath.Join(s.root, "art"), 0o755))
	for name, text := range map[string]string{".gitattributes": "*.psd lockable\n", "art/hero.psd": "hero\n", "art/tree.psd": "tree\n", "art/sky.psd": "sky\n"} {
		must(t, os.WriteFile(filepath.Join(s.root, name), []byte(text), 0o644))
	}
	where := app.Settings{Dir: s.root, Env: s.lookup}
	_, err = app.Init(t.Context(), where, app.InitOptions{})
	must(t, err)
	s.app, err = app.Open(t.Context(), where)
	must(t, err)
	t.Cleanup(func() { must(t, s.app.Close()) })
	people := access.Open(s.app.AccessDir())
	for name, role := range map[string]access.Role{"ann": access.Operator, "bob": access.Operator, "root": access.Admin, "vic": access.Viewer, "robot": access.Agent} {
		s.tokens[name], err = people.Add(t.Context(), name, role)
		must(t, err)
	}
	return s
}

func (s *scene) lookup(name string) (string, bool) {
	for _, entry := range s.env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// serve starts `lockkeeper serve` and returns its address, and what ends it.
func (s *scene) serve(listen string) (address string, end func()) {
	s.t.Helper()
	exe, err := os.Executable()
	must(s.t, err)
	program := filepath.Join(s.dir, "lockkeeper")
	if err := os.Symlink(exe, program); !errors.Is(err, os.ErrExist) {
		must(s.t, err)
	}
	cmd := exec.Command(program, "serve", "--listen", listen)
	cmd.Dir, cmd.Env, cmd.Stderr = s.root, s.env, os.Stderr
	out, err := cmd.StdoutPipe()
	must(s.t, err, cmd.Start())
	end = func() {
		s.t.Helper()
		must(s.t, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	}
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case address = <-line:
	case <-time.After(time.Minute):
	}
	if !strings.HasPrefix(address, "http://") {
		end()
		s.t.Fatalf("the server does not say where it is: %q", address)
	}
	return address, end
}

// run runs a command in a directory, and returns what it said, and how it ended.
func (s *scene) run(dir string, argv ...string) (string, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, s.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// do is run for what must work.
func (s *scene) do(dir string, argv ...string) string {
	s.t.Helper()
	out, err := s.run(dir, argv...)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return out
}

// refused is run for what must not work, and say why.
func (s *scene) refused(dir string, says []string, argv ...string) {
	s.t.Helper()
	out, err := s.run(dir, argv...)
	if err == nil {
		s.t.Fatalf("%s worked:\n%s", strings.Join(argv, " "), out)
	}
	for _, word := range says {
		if !strings.Contains(out, word) {
			s.t.Errorf("%s does not say %q:\n%s", strings.Join(argv, " "), word, out)
		}
	}
}
