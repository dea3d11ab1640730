//go:build machines

package machines

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience ends waits for something that does not happen. A busy machine is slow, so it is
// generous.
const patience = 2 * time.Minute

// A command is a running or ended command on a machine.
type command struct {
	m        *machine
	cmd      *exec.Cmd
	began    time.Time
	took     time.Duration // valid once done is closed
	done     chan struct{}
	out, err output
}

// output is what a command has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// begin starts a command on the machine, in the clone if there is one.
func (m *machine) begin(argv ...string) *command { return m.beginWith(nil, argv...) }

// beginWith is begin with further settings of the command.
func (m *machine) beginWith(set func(*exec.Cmd), argv ...string) *command {
	m.t.Helper()
	c, err := m.launch(set, argv...)
	must(m.t, err)
	return c
}

// launch starts a command. Unlike begin, it may be called on any goroutine.
func (m *machine) launch(set func(*exec.Cmd), argv ...string) (*command, error) {
	path := argv[0]
	if path == "lockkeeper" || path == workName {
		path = filepath.Join(bin, path)
	}
	c := &command{m: m, cmd: exec.Command(path, argv[1:]...), done: make(chan struct{}), began: time.Now()}
	c.cmd.Env, c.cmd.Dir = m.env, home
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.err
	c.cmd.WaitDelay = time.Second // what a command leaves must not keep the test
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if path == filepath.Join(bin, "lockkeeper") {
		c.cmd.Dir = project
	}
	if set != nil {
		set(c.cmd)
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends here
		if err := m.enter(); err != nil {
			started <- err
			return
		}
		started <- c.cmd.Start()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %q: %w", m.name, argv, err)
	}
	m.mu.Lock()
	m.running[c] = true
	m.mu.Unlock()
	go func() {
		c.cmd.Wait() // the state of the process has its exit code
		c.took = time.Since(c.began)
		m.mu.Lock()
		delete(m.running, c)
		m.mu.Unlock()
		close(c.done)
	}()
	return c, nil
}

// code waits for the end of the command and returns its exit code, or -1 if a signal ended it.
func (c *command) code() int {
	c.m.t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.kill()
		<-c.done
		c.m.t.Fatalf("still running after %v: %s", patience, c)
	}
	return c.cmd.ProcessState.ExitCode()
}

// kill ends the process of the command itself, not what it started.
func (c *command) kill() { c.cmd.Process.Kill() }

func (c *command) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *command) String() string {
	state := "running"
	if c.ended() {
		state = fmt.Sprintf("%v after %v", c.cmd.ProcessState, c.took.Round(time.Millisecond))
	}
	return fmt.Sprintf("%s: %s: %s\n%s%s", c.m.name, strings.Join(c.cmd.Args, " "), state, c.out.String(), c.err.String())
}

// must runs a command that succeeds, and returns its output.
func (m *machine) must(argv ...string) string {
	m.t.Helper()
	c := m.begin(argv...)
	if c.code() != 0 {
		m.t.Fatal(c)
	}
	return strings.TrimSpace(c.out.String())
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-limit:
			t.Fatalf("after %v there is still not: %s", patience, what)
		}
	}
}

// hexID returns 32 random hexadecimal digits.
func hexID() string {
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// torture returns how many times longer randomized tests run.
func torture() int {
	n, err := strconv.Atoi(os.Getenv("LOCKKEEPER_TORTURE"))
	if err != nil {
		return 1
	}
	return max(1, n)
}
