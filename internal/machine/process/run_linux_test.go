package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

func TestExitCodes(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	sh := func(script string) Command {
		return Command{Argv: []string{"sh", "-c", script}, Grant: ownGrant("g-codes")}
	}
	for name, test := range map[string]struct {
		c    Command
		code int
		fail bool
	}{
		"own code":       {sh("exit 7"), 7, false},
		"success":        {sh("exit 0"), 0, false},
		"signal":         {sh("kill -KILL $$"), 137, false},
		"marked":         {sh(`test "$LOCKKEEPER_GRANT" = ` + ownGrant("g-codes")), 0, false},
		"not found":      {Command{Argv: []string{"no-such-program-here"}, Grant: "g"}, 127, true},
		"no such file":   {Command{Argv: []string{plain + ".no"}, Grant: "g"}, 127, true},
		"not executable": {Command{Argv: []string{plain}, Grant: "g"}, 126, true},
		"no such folder": {Command{Argv: []string{"sh"}, Dir: plain + ".no", Grant: "g"}, -1, true},
		"no command":     {Command{Grant: "g"}, -1, true},
		"no grant":       {Command{Argv: []string{"true"}}, -1, true},
	} {
		t.Run(name, func(t *testing.T) {
			code, err := Run(t.Context(), test.c)
			if code != test.code || (err != nil) != test.fail {
				t.Errorf("code %d, error %v; want code %d, error %t", code, err, test.code, test.fail)
			}
		})
	}
}

// pipe returns a file for a command's output, and a scanner that reads its lines.
func pipe(t *testing.T) (*os.File, *bufio.Scanner) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return w, bufio.NewScanner(r)
}

// shows: SW-71
func TestNothingOutlivesRun(t *testing.T) {
	h := newHost(t)
	out, lines := pipe(t)
	code, err := Run(t.Context(), Command{Argv: helperArgv("tree", "3"), Grant: ownGrant("g-tree"), Stdout: out, Stderr: os.Stderr})
	if code != 3 || err != nil {
		t.Fatalf("code %d, %v", code, err)
	}
	for _, label := range []string{"near", "barenear", "far", "barefar", "ready"} {
		// Not even a zombie: adopted children are reaped.
		if s, err := readStat(nextNumber(t, lines, label)); !errors.Is(err, errGone) {
			t.Errorf("%s is left: %+v, %v", label, s, err)
			unix.Kill(s.pid, unix.SIGKILL)
		}
	}
	wantLife(t, h, h.self, lockkeeper.ProcessAlive)
	var reaper int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&reaper)), 0, 0, 0); err != nil || reaper != 0 {
		t.Errorf("still the reaper of orphans: %d, %v", reaper, err)
	}
}

// If two commands run in one process, the end of one does not affect the other.
func TestRunsDoNotMeet(t *testing.T) {
	h := newHost(t)
	out, lines := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan int, 1)
	go func() {
		code, _ := Run(ctx, Command{Argv: helperArgv("leaver"), Grant: ownGrant("g-long"), Stdout: out})
		done <- code
	}()
	lost, command := identify(t, nextNumber(t, lines, "lost")), identify(t, nextNumber(t, lines, "ready"))
	if s, err := readStat(lost.PID); err != nil || s.parent == 1 || s.parent == command.PID {
		t.Fatalf("the orphan was not adopted: %+v, %v", s, err)
	}
	ps := []lockkeeper.Process{lost, command}
	if code, err := Run(t.Context(), Command{Argv: []string{"true"}, Grant: ownGrant("g-short")}); code != 0 || err != nil {
		t.Fatalf("code %d, %v", code, err)
	}
	for _, p := range ps {
		wantLife(t, h, p, lockkeeper.ProcessAlive)
	}
	cancel()
	if code := <-done; code != 128+int(unix.SIGTERM) {
		t.Errorf("code %d", code)
	}
	for _, p := range ps {
		wantLife(t, h, p, lockkeeper.ProcessDead)
	}
}

// shows: GP-15
func TestLostContextEndsTheStubborn(t *testing.T) {
	lost := errors.New("the grant is lost")
	out, lines := pipe(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		if lines.Scan() {
			cancel(lost)
		}
	}()
	code, err := Run(ctx, Command{Argv: helperArgv("stubborn"), Grant: ownGrant("g-lost"), Stdout: out, KillAfter: 20 * time.Millisecond})
	if code != 137 || !errors.Is(err, lost) {
		t.Errorf("code %d, %v", code, err)
	}
	if code, err := Run(ctx, Command{Argv: []string{"true"}, Grant: ownGrant("g-lost")}); code != -1 || !errors.Is(err, lost) {
		t.Errorf("started after the loss: code %d, %v", code, err)
	}
}

// shows: GP-15
func TestLostContextLetsTheObedientFinish(t *testing.T) {
	out, lines := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if lines.Scan() {
			cancel()
		}
	}()
	code, err := Run(ctx, Command{Argv: helperArgv("report"), Grant: ownGrant("g-lost"), Stdout: out})
	if code != 42 || !errors.Is(err, context.Canceled) {
		t.Errorf("code %d, %v", code, err)
	}
}

// The command starts only after its keeper is recorded.
func TestStartedLearnsTheKeeper(t *testing.T) {
	h := newHost(t)
	var got lockkeeper.Process
	out, lines := pipe(t)
	mark := filepath.Join(t.TempDir(), "recorded")
	code, err := Run(t.Context(), Command{Argv: []string{"sh", "-c", `test -e "$0" && echo keeper $PPID`, mark}, Grant: ownGrant("g-started"), Stdout: out,
		Started: func(p lockkeeper.Process) error { got = p; return os.WriteFile(mark, nil, 0o600) }})
	if code != 0 || err != nil {
		t.Fatalf("code %d, %v", code, err)
	}
	want := h.self
	want.Group, want.Keeper, want.Cgroup = nextNumber(t, lines, "keeper"), got.Keeper, got.Cgroup
	if got != want || got.Keeper == 0 {
		t.Errorf("told %+v, want %+v", got, want)
	}
}

func TestUnrecordedCommandDoesNotStart(t *testing.T) {
	h := newHost(t)
	unrecorded := errors.New("the store is gone")
	var keeper lockkeeper.Process
	mark := filepath.Join(t.TempDir(), "started")
	code, err := Run(t.Context(), Command{Argv: []string{"touch", mark}, Grant: ownGrant("g-unrecorded"),
		Started: func(self lockkeeper.Process) (err error) {
			keeper = identify(t, self.Group)
			return unrecorded
		}})
	if code != -1 || !errors.Is(err, unrecorded) {
		t.Errorf("code %d, %v", code, err)
	}
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
	wantLife(t, h, keeper, lockkeeper.ProcessDead)
}

func TestSignalsArePassedOn(t *testing.T) {
	c := launch(t, nil, helperArgv("supervise", append([]string{ownGrant("g-signals")}, helperArgv("report")...)...)...)
	c.next("ready")
	for _, s := range []unix.Signal{unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGTERM} {
		if signal.Ignored(s) { // as under nohup: it stays ignored
			continue
		}
		c.cmd.Process.Signal(s)
		c.expect("got " + unix.SignalName(s))
	}
	c.cmd.Wait()
	if code := c.cmd.ProcessState.ExitCode(); code != 42 {
		t.Errorf("code %d", code)
	}
}

// The keeper's limit mark does not change the limit that marks sandboxes. Otherwise a server would
// refuse a person's command under lock exec as an agent's.
func TestBrandIsNoMarkOfASandbox(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_LOCKS, &own); err != nil {
		t.Fatal(err)
	}
	want := "unlimited"
	if own.Max != unix.RLIM_INFINITY {
		want = fmt.Sprint(own.Max)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := Run(t.Context(), Command{Argv: []string{"grep", "-E", "^Max (file locks|resident set)", "/proc/self/limits"}, Grant: ownGrant("g-limits"), Stdout: out}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || strings.Fields(lines[1])[4] != want {
		t.Errorf("limits under a keeper:\n%s", text)
	}
	if strings.Contains(lines[0], "unlimited") {
		t.Errorf("the command carries no limit mark: %s", lines[0])
	}
}
