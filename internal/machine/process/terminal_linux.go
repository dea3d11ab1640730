package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// A terminal is the controlling terminal of this process, lent to the process group of a
// command. Its methods are called from one locked thread.
type terminal struct {
	fd    int
	own   int // process group of this process
	group int // process group of the command, once it runs
	lent  bool
}

// openTerminal returns the controlling terminal, or nil if this process has none.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &terminal{fd: fd, own: unix.Getpgrp()}
}

func (t *terminal) close() {
	if t == nil {
		return
	}
	t.reclaim()
	unix.Close(t.fd)
}

// lendAtStart reports whether our group has the terminal, so that the command takes
// it before it executes: a program may check for a terminal only once, at its start.
func (t *terminal) lendAtStart() bool {
	if t == nil {
		return false
	}
	front, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	t.lent = err == nil && front == t.own
	return t.lent
}

// lend makes the command's group the foreground group, if ours is. It reports
// whether the command has the terminal.
func (t *terminal) lend() bool {
	if t == nil {
		return false
	}
	switch front, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); {
	case err != nil:
		return false
	case front == t.group:
		return true
	case front != t.own:
		return false
	}
	t.lent = t.setFront(t.group) == nil
	return t.lent
}

// reclaim makes our group the foreground group again, unless another group, such as the
// shell's, took the terminal meanwhile.
func (t *terminal) reclaim() {
	if t == nil || !t.lent {
		return
	}
	t.lent = false
	front, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err == nil && (front == t.group || errors.Is(unix.Kill(-front, 0), unix.ESRCH)) {
		t.setFront(t.own)
	}
}

// setFront sets the foreground group. It blocks SIGTTOU in this thread, because the kernel sends
// that to a process that takes the terminal from the background.
func (t *terminal) setFront(group int) error {
	var block, before unix.Sigset_t
	block.Val[0] = 1 << (uint(unix.SIGTTOU) - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &block, &before); err != nil {
		return err
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

// wantsTerminal reports whether the command should have the terminal from its start. It should if
// it reads from the terminal and is not the head of a pipeline: later parts, such as a pager, share
// our group and need the terminal themselves.
func wantsTerminal(stdin, stdout *os.File) bool {
	if stdin == nil {
		return false
	}
	// The call succeeds only for the caller's controlling terminal.
	if _, err := unix.IoctlGetInt(int(stdin.Fd()), unix.TIOCGPGRP); err != nil {
		return false
	}
	if stdout == nil {
		return true
	}
	info, err := stdout.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe == 0
}

// stopSelf stops this process as the terminal's stop key would, and returns when the process is
// continued. In an orphaned process group, which the kernel does not stop, it returns at once. It
// uses SIGTTIN, because SIGTSTP never stops a Go program that once listened to it. The signal goes
// to this thread, so it takes effect before the call returns.
func stopSelf() { unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGTTIN) }

// detach keeps a background command away from the person's terminal. The command
// inherits only its standard files, and no descriptor of a terminal. Its keeper
// gives it its own session, so it has no controlling terminal to type into.
func (c *Command) detach(cmd *exec.Cmd) error {
	if isTerminal(c.Stdin) {
		cmd.Stdin = nil
	}
	// os/exec copies to a writer that is not an *os.File through a pipe.
	if isTerminal(c.Stdout) {
		cmd.Stdout = struct{ io.Writer }{c.Stdout}
	}
	if isTerminal(c.Stderr) {
		cmd.Stderr = struct{ io.Writer }{c.Stderr}
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep open files from the command: %w", err)
	}
	return nil
}

func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
