package process

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal of this process, lent to the process
// group of a command. Its methods are called from one locked thread.
type terminal struct {
	fd    int
	own   int // this process's group
	group int // the command's group, once it runs
	lent  bool
}

// openTerminal returns nil when this process has no controlling terminal.
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
	t.takeBack()
	unix.Close(t.fd)
}

// lendAtStart has the command take the terminal before it executes, if our group
// has it: afterwards would be too late for a program that looks once.
func (t *terminal) lendAtStart(attr *syscall.SysProcAttr) {
	if t == nil {
		return
	}
	if front, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); err == nil && front == t.own {
		attr.Foreground, attr.Ctty = true, t.fd
		t.lent = true
	}
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

// takeBack makes our group the foreground group again, unless somebody else,
// such as the shell, took the terminal meanwhile.
func (t *terminal) takeBack() {
	if t == nil || !t.lent {
		return
	}
	t.lent = false
	front, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err == nil && (front == t.group || errors.Is(unix.Kill(-front, 0), unix.ESRCH)) {
		t.setFront(t.own)
	}
}

// setFront blocks SIGTTOU in this thread alone meanwhile: taking the terminal
// from the background is what that signal is sent for.
func (t *terminal) setFront(group int) error {
	var block, before unix.Sigset_t
	block.Val[0] = 1 << (uint(unix.SIGTTOU) - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &block, &before); err != nil {
		return err
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

// wantsTerminal reports whether the command should have the terminal from its
// start: it reads from it, and it is not the head of a pipeline whose later
// parts, such as a pager, share our group and need the terminal themselves.
func wantsTerminal(stdin, stdout *os.File) bool {
	if stdin == nil {
		return false
	}
	// Answers only for the controlling terminal of the caller.
	if _, err := unix.IoctlGetInt(int(stdin.Fd()), unix.TIOCGPGRP); err != nil {
		return false
	}
	if stdout == nil {
		return true
	}
	info, err := stdout.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe == 0
}

// stopSelf stops this process as the terminal's stop key would have, and returns
// when it was continued; at once where nobody could continue it, because the
// kernel does not stop orphaned process groups. It uses SIGTTIN since the Go
// runtime, once told to listen to SIGTSTP, never again lets it stop the process.
// The signal goes to this thread, so it has taken effect when the call returns.
func stopSelf() { unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGTTIN) }

// stoppedBy asks whether a child was stopped since the last question, and by
// which signal. It never takes the child's exit status.
func stoppedBy(pid int) (unix.Signal, bool) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG, nil)
	if err != nil || info.Signo == 0 {
		return 0, false
	}
	// The part of siginfo_t for SIGCHLD: pid, uid, status. It follows three
	// ints and is aligned for a pointer.
	word := unsafe.Sizeof(uintptr(0))
	at := (12+word-1)/word*word + 8
	return unix.Signal(*(*int32)(unsafe.Add(unsafe.Pointer(&info), at))), true
}
