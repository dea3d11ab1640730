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

// Codebase is one that is open, with what a server of it is made from.
type Codebase struct {
	*Project
	App    *project.Project
	View   *view.Reader
	Runs   *acts.Runs
	People *access.Book
}

// Codebase makes the codebase lockable, and opens it for as long as the test runs.
func (p *Project) Codebase(t testing.TB) *Codebase {
	t.Helper()
	a := p.Open(t)
	o := &Codebase{Project: p, App: a, View: view.New(a), Runs: acts.NewRuns(a, p.Env, nil), People: access.Open(a.AccessDir())}
	t.Cleanup(func() { Must(t, o.Runs.Close()) })
	return o
}

// Token is one for somebody new.
func (o *Codebase) Token(t testing.TB, name string, role access.Role) string {
	t.Helper()
	token, err := o.People.Add(t.Context(), name, role)
	Must(t, err)
	return token
}

// Program is where the program is that is tested: the test's own, which Main made that.
func (p *Project) Program(t testing.TB) string {
	t.Helper()
	program := filepath.Join(p.Dir, Lockkeeper)
	if _, err := os.Lstat(program); errors.Is(err, os.ErrNotExist) {
		callSelf(t, program)
	}
	return program
}

// Command is one of that program, in the codebase.
func (p *Project) Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(p.Program(t), args...)
	cmd.Dir, cmd.Env, cmd.Stderr = p.Root, p.Env, os.Stderr
	return cmd
}

// Serve starts `lockkeeper serve`, and returns its address and what ends it.
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

// Strict is a log in which an error is one of the test.
func Strict(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(complaint{t}, &slog.HandlerOptions{Level: slog.LevelError}))
}

type complaint struct{ testing.TB }

// Write implements io.Writer.
func (c complaint) Write(line []byte) (int, error) {
	c.Errorf("%s", line)
	return len(line), nil
}
