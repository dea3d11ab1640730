package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"lockkeeper"
)

// helperArg makes the test binary one of the helpers below. It is an argument
// and not a variable, so that a helper can run with an empty environment.
const helperArg = "process-helper"

func init() {
	if len(os.Args) > 2 && os.Args[1] == helperArg && os.Args[2] == "headless" {
		runtime.LockOSThread() // main must own the first thread to end it
	}
}

// ownVariable tells helpers which run of the tests they belong to.
const ownVariable = "LOCKKEEPER_TEST_RUN"

// ownGrant returns the id of a grant of this run of the tests. Leftover processes of a grant are
// found on the whole machine and killed, so two runs must not share an id.
func ownGrant(grant string) string { return os.Getenv(ownVariable) + grant }

func TestMain(m *testing.M) {
	if os.Getenv(ownVariable) == "" {
		os.Setenv(ownVariable, fmt.Sprint(os.Getpid(), "-"))
	}
	if len(os.Args) > 2 && os.Args[1] == helperArg {
		os.Exit(helper(os.Args[2], os.Args[3:]))
	}
	goleak.VerifyTestMain(m)
}

func helperArgv(mode string, args ...string) []string {
	return append([]string{os.Args[0], helperArg, mode}, args...)
}

func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

func forever() int { time.Sleep(time.Hour); return 0 }

// spawn starts a helper below a helper and prints its pid after a label.
func spawn(label string, attr *syscall.SysProcAttr, env []string, mode string) {
	cmd := exec.Command(os.Args[0], helperArg, mode)
	cmd.SysProcAttr, cmd.Env = attr, env
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	say("%s %d", label, cmd.Process.Pid)
}

func helper(mode string, args []string) int {
	switch mode {
	case "sleep":
		say("ready %d", os.Getpid())
		return forever()

	case "named": // a name made to confuse readers of /proc
		if err := os.WriteFile("/proc/self/comm", []byte(") R 1 ) (x"), 0); err != nil {
			panic(err)
		}
		say("ready %d", os.Getpid())
		return forever()

	case "headless": // the first thread ends, another lives on
		go func() {
			for {
				if s, err := readStat(os.Getpid()); err == nil && s.state == 'Z' {
					break
				}
				time.Sleep(time.Millisecond)
			}
			say("ready %d", os.Getpid())
			forever()
		}()
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)

	case "stubborn":
		signal.Ignore(unix.SIGTERM, unix.SIGINT)
		say("ready %d", os.Getpid())
		return forever()

	case "report": // prints each signal it gets; SIGTERM ends it
		signals := make(chan os.Signal, 16)
		signal.Notify(signals, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGTERM)
		say("ready %d", os.Getpid())
		for s := range signals {
			say("got %s", unix.SignalName(s.(unix.Signal)))
			if s == unix.SIGTERM {
				return 42
			}
		}

	case "tree": // leaves descendants in every way
		bare := []string{"PATH=/"}
		spawn("near", nil, nil, "sleep")
		spawn("barenear", nil, bare, "sleep")
		spawn("far", &syscall.SysProcAttr{Setsid: true}, nil, "sleep")
		spawn("barefar", &syscall.SysProcAttr{Setsid: true}, bare, "sleep")
		say("ready %d", os.Getpid())
		if len(args) > 0 {
			code, _ := strconv.Atoi(args[0])
			return code
		}
		return forever()

	case "leaver": // its child leaves an unmarked grandchild
		if len(args) > 0 {
			spawn("lost", &syscall.SysProcAttr{Setsid: true}, []string{"PATH=/"}, "sleep")
			return 0
		}
		child := exec.Command(os.Args[0], helperArg, mode, "now")
		child.Stdout = os.Stdout
		if err := child.Run(); err != nil {
			panic(err)
		}
		say("ready %d", os.Getpid())
		return forever()

	case "supervise": // supervise GRANT ARGV...
		code, err := Run(context.Background(), Command{Argv: args[1:], Grant: args[0], Foreground: true,
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return code

	case "background": // background GRANT ARGV..., with this terminal as its files
		code, err := Run(context.Background(), Command{Argv: args[1:], Grant: args[0], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return code

	case "grope":
		return grope()

	case "holder": // holder ARGV...
		return holder(args)

	case "early": // early DIR ARGV...
		return early(args[0], args[1:])

	case "claimant": // claimant DIR ARGV...
		if err := claimant(args[0], args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0

	case "judge": // judge DIR PROCESS
		h, err := NewHost(args[0])
		var p lockkeeper.Process
		if err := errors.Join(err, json.Unmarshal([]byte(args[1]), &p)); err != nil {
			panic(err)
		}
		say("%s", h.Liveness(p))
		return 0

	case "recover": // recover PID START GROUP GRANT
		h, err := NewHost("")
		if err != nil {
			panic(err)
		}
		p := h.self
		p.PID, _ = strconv.Atoi(args[0])
		p.Start, _ = strconv.ParseUint(args[1], 10, 64)
		err = h.EndLeftovers(context.Background(), p, args[2])
		var left *LeftoversError
		if errors.As(err, &left) && len(left.Left) == 1 && left.Left[0].PID == os.Getpid() {
			say("spared itself")
			return 0
		}
		say("unexpected: %v", err)
		return 1

	case "shell":
		return jobShell(args)

	case "screen":
		return screen()
	}
	panic("unknown helper " + mode)
}

// child is a helper started by a test.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// launch starts a command in its own process group, so that the command's signals do not reach the
// test. It kills the group at the end of the test.
func launch(t *testing.T, env []string, argv ...string) *child {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t, cmd, bufio.NewScanner(out)}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return c
}

// next returns the number that follows label in the next line.
func (c *child) next(label string) int {
	c.t.Helper()
	return nextNumber(c.t, c.lines, label)
}

func nextLine(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("output ended: %v", lines.Err())
	}
	return lines.Text()
}

func nextNumber(t *testing.T, lines *bufio.Scanner, label string) int {
	t.Helper()
	line := nextLine(t, lines)
	text, ok := strings.CutPrefix(line, label+" ")
	n, err := strconv.Atoi(text)
	if !ok || err != nil {
		t.Fatalf("got line %q, want %s and a number", line, label)
	}
	return n
}

func (c *child) expect(want string) {
	c.t.Helper()
	if got := nextLine(c.t, c.lines); got != want {
		c.t.Fatalf("got line %q, want %q", got, want)
	}
}

func newHost(t *testing.T) *Host {
	t.Helper()
	h, err := NewHost("")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func identify(t *testing.T, pid int) lockkeeper.Process {
	t.Helper()
	p, err := Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wantGone waits for the end of processes, and kills them if they stay.
func wantGone(t *testing.T, h *Host, ps ...lockkeeper.Process) {
	t.Helper()
	for _, p := range ps {
		select {
		case <-h.Exited(t.Context(), p):
		case <-time.After(5 * time.Minute): // only a limit for hangs
			t.Errorf("process %d still runs", p.PID)
			unix.Kill(p.PID, unix.SIGKILL)
		}
	}
}

func wantLife(t *testing.T, h *Host, p lockkeeper.Process, want lockkeeper.Liveness) {
	t.Helper()
	if got := h.Liveness(p); got != want {
		t.Errorf("Life(%+v) = %s, want %s", p, got, want)
	}
}
