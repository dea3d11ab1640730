package sandbox

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
)

// daemon starts a process that leaves its parent, session, group and environment. It holds
// standard output open as long as it runs.
const daemon = `(setsid env -i sh -c 'sleep 1000 & sleep 1000' &) `

// A heard is the standard output of a tree of processes. It ends when all of them have ended.
type heard struct {
	t     *testing.T
	in    *os.File
	out   *os.File
	lines *bufio.Reader
}

func listen(t *testing.T) *heard {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	return &heard{t, in, out, bufio.NewReader(in)}
}

func (h *heard) line() string {
	h.t.Helper()
	h.in.SetReadDeadline(time.Now().Add(hung))
	line, err := h.lines.ReadString('\n')
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// hung is how long a test waits for a process before it fails. It is only a limit for hangs.
const hung = 5 * time.Minute

// wantSilence waits until no process that could print is left.
func (h *heard) wantSilence() {
	h.t.Helper()
	h.out.Close()
	h.in.SetReadDeadline(time.Now().Add(hung))
	if rest, err := io.ReadAll(h.lines); err != nil {
		h.t.Errorf("something still runs: %q, %v", rest, err)
	}
}

// A daemon without any identifying mark ends with the run, before Run returns.
//
// shows: GP-5 SW-71
func TestDaemonsEndWithTheRun(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s, h := newScene(t), listen(t)
		code, err := process.Run(t.Context(), process.Command{Argv: s.wrap(l, "sh", "-c", daemon+"; exit 7"), Dir: s.workspace,
			Grant: ownGrant("g-daemon"), Stdout: h.out, Stderr: os.Stderr})
		if code != 7 || err != nil {
			t.Errorf("code %d, %v", code, err)
		}
		h.wantSilence()
	})
}

// Even if the supervisor is killed with SIGKILL, no process is left.
//
// shows: GP-5 SW-71
func TestKilledSupervisorLeavesNothing(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		if !l.Namespaces {
			t.Skip("without namespaces this is left to process.EndLeftovers")
		}
		s, h := newScene(t), listen(t)
		argv := helperArgv("supervise", s.wrap(l, "sh", "-c", daemon+"; echo ready; sleep 1000")...)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = s.workspace, h.out, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.line()
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		h.wantSilence()
	})
}

// supervise runs as a supervisor that the test kills.
func supervise(argv []string) int {
	code, err := process.Run(context.Background(), process.Command{Argv: argv, Grant: ownGrant("g-killed"), Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		return report(err)
	}
	return code
}

// The death of any process between supervisor and command ends all of them.
func TestNothingOutlivesTheProcessOutside(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s, h := newScene(t), listen(t)
		ctx, cancel := context.WithTimeout(t.Context(), hung)
		defer cancel()
		killed := make(chan error, 1)
		var by syscall.Signal
		code, err := process.Run(ctx, process.Command{Argv: s.wrap(l, "sh", "-c", daemon+"; echo ready; sleep 1000"), Dir: s.workspace,
			Grant: ownGrant("g-outside"), Stdout: h.out, Stderr: os.Stderr,
			Started: func(p lockkeeper.Process) error {
				go func() {
					_, err := h.lines.ReadString('\n') // the command is ready
					killed <- errors.Join(err, syscall.Kill(p.Group, syscall.SIGKILL))
				}()
				return nil
			},
			Killed: func(s syscall.Signal) { by = s }})
		if killErr := <-killed; killErr != nil {
			t.Error(killErr)
		}
		if code != 137 || err != nil || by != syscall.SIGKILL {
			t.Errorf("code %d, %v, signal %v", code, err, by)
		}
		h.wantSilence()
	})
}

// The exit code or signal of a command is visible outside unchanged.
func TestEndIsSeenAsItWas(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		for script, want := range map[string]struct {
			code int
			by   syscall.Signal
		}{
			"exit 0":        {0, 0},
			"exit 143":      {143, 0},
			"kill -TERM $$": {143, syscall.SIGTERM},
			"kill -KILL $$": {137, syscall.SIGKILL},
			"kill -SEGV $$": {139, syscall.SIGSEGV},
			"kill -PIPE $$": {141, syscall.SIGPIPE},
			"kill -QUIT $$": {131, syscall.SIGQUIT},
		} {
			var by syscall.Signal
			code, err := process.Run(t.Context(), process.Command{Argv: s.wrap(l, "sh", "-c", "ulimit -c 0; "+script), Dir: s.workspace, Grant: ownGrant("g-end"),
				Stderr: os.Stderr, Killed: func(s syscall.Signal) { by = s }})
			if code != want.code || by != want.by || err != nil {
				t.Errorf("%s: code %d, signal %v, %v", script, code, by, err)
			}
		}
		for name, want := range map[string]int{"no-such-program-here": 127, s.workspace + "/file": 126} {
			if said, code := s.run(l, name); code != want || !strings.Contains(said, name) {
				t.Errorf("%s: code %d: %s", name, code, said)
			}
		}
	})
}

// When the context ends, the command itself gets one signal and can finish.
//
// shows: GP-15
func TestCommandIsAskedToEnd(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s, h := newScene(t), listen(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		type outcome struct {
			code int
			err  error
		}
		done := make(chan outcome, 1)
		go func() {
			code, err := process.Run(ctx, process.Command{Dir: s.workspace, Grant: ownGrant("g-asked"), Stdout: h.out, Stderr: os.Stderr,
				Argv: s.wrap(l, "sh", "-c", `n=0; trap 'n=$((n+1)); echo asked $n' TERM; echo ready; while [ $n = 0 ]; do sleep 0.05; done; sleep 0.1; exit $((40+n))`)})
			done <- outcome{code, err}
		}()
		h.line()
		cancel()
		if got := <-done; got.code != 41 || !errors.Is(got.err, context.Canceled) {
			t.Errorf("code %d, %v", got.code, got.err)
		}
		if line := h.line(); line != "asked 1" {
			t.Error(line)
		}
		h.wantSilence()
	})
}

// Processes started under a grant are found by their mark from outside, although they have their
// own PID namespace.
func TestMarkIsSeenFromOutside(t *testing.T) {
	l, s, h := best(t), newScene(t), listen(t)
	host, err := process.NewHost("")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	who := make(chan lockkeeper.Process, 1)
	done := make(chan int, 1)
	go func() {
		code, _ := process.Run(ctx, process.Command{Argv: s.wrap(l, "sh", "-c", "echo ready; sleep 1000"), Dir: s.workspace, Grant: ownGrant("g-mark"),
			Stdout: h.out, Stderr: os.Stderr, Started: func(p lockkeeper.Process) error { who <- p; return nil }})
		done <- code
	}()
	p := <-who
	h.line()
	if err := host.EndWork(t.Context(), p, ownGrant("g-mark")); err != nil {
		t.Error(err)
	}
	if code := <-done; code != 137 {
		t.Errorf("code %d", code)
	}
	h.wantSilence()
}

func BenchmarkTrue(b *testing.B) {
	for name, l := range map[string]Level{"plain": {}, "landlock": {Landlock: landlockVersion()}, "namespaces": {Landlock: landlockVersion(), Namespaces: true},
		"user namespaces": {Landlock: landlockVersion(), Namespaces: true, User: true}} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			argv, err := Wrap(l, Confinement{Write: []string{dir}}, []string{"true"})
			if err != nil {
				b.Fatal(err)
			}
			var used time.Duration
			for b.Loop() {
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Dir = dir
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			}
			b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op") // independent of the load of the machine
		})
	}
}
