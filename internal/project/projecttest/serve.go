package projecttest

import (
	"bufio"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

// A Codebase is an open codebase with the parts of its server.
type Codebase struct {
	*Project
	App    *project.Project
	View   *view.Reader
	Runs   *acts.Runs
	People *access.Accounts
}

// Codebase initializes the codebase and opens it until the test ends.
func (p *Project) Codebase(t testing.TB) *Codebase {
	t.Helper()
	a := p.Open(t)
	o := &Codebase{Project: p, App: a, View: view.New(a), Runs: acts.NewRuns(a, p.Env, nil), People: access.Open(a.AccessDir())}
	t.Cleanup(func() { Must(t, o.Runs.Close()) })
	return o
}

func (o *Codebase) Token(t testing.TB, name string, role access.Role) string {
	t.Helper()
	token, err := o.People.Add(t.Context(), name, role)
	Must(t, err)
	return token
}

// Program returns the path of the program under test: the test binary, by its name (Main).
func (p *Project) Program(t testing.TB) string {
	t.Helper()
	program := filepath.Join(p.Dir, Lockkeeper)
	if _, err := os.Lstat(program); errors.Is(err, os.ErrNotExist) {
		callSelf(t, program)
	}
	return program
}

func (p *Project) Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(p.Program(t), args...)
	cmd.Dir, cmd.Env, cmd.Stderr = p.Root, p.Env, os.Stderr
	return cmd
}

// Serve starts `lockkeeper serve`, and returns its address and a function that stops it.
func (p *Project) Serve(t testing.TB, listen string) (address string, end func()) {
	t.Helper()
	cmd := p.Command(t, "serve", "--listen", listen)
	out, err := cmd.StdoutPipe()
	Must(t, err, cmd.Start())
	end = func() {
		t.Helper()
		Must(t, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	}
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case address = <-line:
	case <-time.After(5 * time.Minute):
	}
	if !strings.HasPrefix(address, "http://") {
		end()
		t.Fatalf("the server does not say where it is: %q", address)
	}
	return address, end
}

// Strict returns a log that fails the test on an error.
func Strict(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(complaint{t}, &slog.HandlerOptions{Level: slog.LevelError}))
}

type complaint struct{ testing.TB }

func (c complaint) Write(line []byte) (int, error) {
	c.Errorf("%s", line)
	return len(line), nil
}
