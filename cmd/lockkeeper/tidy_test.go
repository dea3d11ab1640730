package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A background is a command that runs beside a test until it gets a line of input.
type background struct {
	checkout
	cmd   *exec.Cmd
	in    io.Writer
	out   *bufio.Reader
	first string // its first line
}

// begin starts a command and waits for its first line, which must contain a text.
func (c checkout) begin(command, text string) *background {
	c.Helper()
	b := &background{checkout: c, cmd: c.command(command)}
	in, err := b.cmd.StdinPipe()
	if err != nil {
		c.Fatal(err)
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		c.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		c.Fatal(err)
	}
	b.in, b.out = in, bufio.NewReader(out)
	if b.first, err = b.out.ReadString('\n'); err != nil || !strings.Contains(b.first, text) {
		c.Fatalf("%s: %q, %v", command, b.first, err)
	}
	return b
}

// end lets the command end and returns the rest of its output.
func (b *background) end() string {
	b.Helper()
	if _, err := io.WriteString(b.in, "go\n"); err != nil {
		b.Fatal(err)
	}
	rest, err := io.ReadAll(b.out)
	if err := errors.Join(err, b.cmd.Wait()); err != nil {
		b.Errorf("%v: %s", err, rest)
	}
	return string(rest)
}

// newProject returns a checkout with files for tidy to move, and a build that waits for a line
// and then shows one of them.
func newProject(t *testing.T) checkout {
	t.Helper()
	c := newCheckout(t, map[string]string{"README.md": "x\n", "NOTES.md": "a fixture of the tests\n", "archive/report-2026-02.md": "y\n",
		"lockkeeper.yaml": "gate: {allowed_write_paths: [.]}\n", "Makefile": "test:\n\t@echo started; read go; cat NOTES.md\n"})
	if out, n := c.run("lockkeeper init"); n != 1 {
		t.Fatal(out)
	}
	return c
}

const tidied = "moved       NOTES.md -> docs/NOTES.md"

// While the tests of the workflow in docs/lease.md run, tidy moves nothing, but a second
// test run works beside them. Afterwards tidy runs, without a terminal.
//
// shows: LE-49
func TestTidyDuringTests(t *testing.T) {
	steps := workflowIn(t, "lease.md")
	under := slices.IndexFunc(steps, func(step string) bool { return strings.Contains(step, "make test") })
	if under < 0 {
		t.Fatalf("no step runs the tests: %q", steps)
	}
	c := newProject(t)
	tests := c.begin(steps[under], "started")
	if text, n := c.run("lockkeeper tidy --execute --lease-timeout 0"); n != 0 || !strings.Contains(text, "another process is running") {
		t.Errorf("tidy ran during the tests:\n%s", text)
	}
	if text, n := c.run("echo go | { " + steps[under] + "; }"); n != 1 || !strings.Contains(text, "a fixture of the tests") {
		t.Errorf("a second test run:\n%s", text)
	}
	if text := tests.end(); !strings.Contains(text, "a fixture of the tests") {
		t.Errorf("the tests saw %q", text)
	}
	others := slices.Delete(slices.Clone(steps), under, under+1)
	if text, n := c.run(others...); n != len(others) {
		t.Errorf("step %d:\n%s", n+1, text)
	}
	if text, n := c.run("lockkeeper tidy --execute --lease-timeout 0"); n != 1 || !strings.Contains(text, tidied) {
		t.Errorf("tidy after the tests:\n%s", text)
	}
}

// While a build holds the lease with other readers, the archive is consolidated in the
// background, and nothing else.
//
// shows: LE-48
func TestArchiveDuringABuild(t *testing.T) {
	c := newProject(t)
	build := c.begin("lockkeeper lease run --read --path .autonomous_runs/.locks/tidy.lock -- make test", "started")
	if text, n := c.run("lockkeeper tidy --execute --phase archive --lease-timeout 0"); n != 1 || !strings.Contains(text, "moved       archive/report-2026-02.md -> archive/2026-02/report-2026-02.md") {
		t.Errorf("the archive during the build:\n%s", text)
	}
	if text, n := c.run("lockkeeper tidy --execute --lease-timeout 0"); n != 0 {
		t.Errorf("a whole run during the build:\n%s", text)
	}
	if text := build.end(); !strings.Contains(text, "a fixture of the tests") {
		t.Errorf("the build saw %q", text)
	}
}

// The flags set how long a run waits for the lease, how long the lease lasts without a
// renewal, and that there is none. The defaults are 30 and 1800 seconds.
//
// shows: LE-16
func TestLeaseFlags(t *testing.T) {
	c := newProject(t)
	help, n := c.run("lockkeeper tidy --help")
	for _, flag := range []string{"--lease-timeout duration", "--lease-ttl duration", "--no-lease"} {
		if n != 1 || !strings.Contains(help, flag) {
			t.Errorf("no %s in\n%s", flag, help)
		}
	}
	for _, line := range strings.Split(help, "\n") {
		if strings.Contains(line, "--lease-timeout") && !strings.Contains(line, "30s") || strings.Contains(line, "--lease-ttl") && !strings.Contains(line, "30m") {
			t.Errorf("another default: %s", line)
		}
	}
	lock := filepath.Join(c.dir, ".autonomous_runs", ".locks", "tidy.lock")
	for flags, want := range map[string]time.Duration{"": 1800 * time.Second, "--lease-ttl 600": 600 * time.Second, "--lease-ttl 90m": 90 * time.Minute, "--no-lease": 0} {
		c.write("NOTES.md", "x\n")
		// A run that holds its lease and waits for that of the queue.
		queue, n := c.run("lockkeeper lease acquire --path .autonomous_runs/.locks/queue.lock --owner other")
		if n != 1 {
			t.Fatal(queue)
		}
		run := c.begin("echo started; lockkeeper tidy --execute "+flags+" --lease-timeout 60 2>&1; read go", "started")
		var lease struct {
			ExpiresAt time.Time `json:"expires_at"`
			RenewedAt time.Time `json:"last_renewed_at"`
		}
		for ; want > 0 && lease.ExpiresAt.IsZero() && t.Context().Err() == nil; time.Sleep(time.Millisecond) {
			if text, err := os.ReadFile(lock); err == nil {
				if err := json.Unmarshal(text, &lease); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := lease.ExpiresAt.Sub(lease.RenewedAt); want > 0 && (got < want || got > want+2*time.Second) {
			t.Errorf("%s: the lease lasts %s", flags, got)
		}
		if text, n := c.run("lockkeeper tidy --execute --lease-timeout 50ms"); want > 0 && (n != 0 || !strings.Contains(text, "another process is running")) {
			t.Errorf("%s: a second run:\n%s", flags, text)
		}
		if text, n := c.run("lockkeeper lease release --path .autonomous_runs/.locks/queue.lock --token " + strings.TrimSpace(queue)); n != 1 {
			t.Fatal(text)
		}
		if text := run.end(); !strings.Contains(text, tidied) {
			t.Errorf("%s: %s", flags, text)
		}
		if text, n := c.run("rm docs/NOTES.md"); n != 1 {
			t.Fatal(text)
		}
	}
}
