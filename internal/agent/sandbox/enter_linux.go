package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/overlay"
	"lockkeeper/internal/machine/peer"
)

// Main runs a stage of a sandbox, or mounts an overlay (overlay.Main), if this program was started
// for that. It must be called before anything else. If handled is true, the program must exit with code.
func Main(args []string) (handled bool, code int) {
	if handled, code := overlay.Main(args); handled || len(args) < 2 {
		return handled, code
	}
	var act func(order, []string) (int, error)
	switch args[1] {
	case enterArg:
		act = enter
	case innerArg:
		act = inner
	case tryArg:
		return true, try(args[2:])
	default:
		return false, 0
	}
	o, command, err := readOrder(args[2:])
	if err != nil {
		return true, report(err)
	}
	code, err = act(o, command)
	if err != nil {
		return true, report(err)
	}
	return true, code
}

// report prints why the command did not run, and returns the exit code.
func report(err error) int {
	fmt.Fprintln(os.Stderr, "sandbox:", err)
	var failed *startError
	if errors.As(err, &failed) {
		return failed.code
	}
	return ExitFailed
}

// A startError reports that the command itself could not be started. Its code is the exit code that
// shells use for such a failure.
type startError struct {
	code int
	err  error
}

func (e *startError) Error() string { return e.err.Error() }

func notStarted(program string, err error) error {
	code := 126
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = 127
	}
	return &startError{code, fmt.Errorf("run %q: %w", program, err)}
}

// enter is the first stage, which the supervisor starts. Without namespaces it becomes
// the command. With namespaces it starts their first process, waits, and ends as the
// command ended.
func enter(o order, argv []string) (int, error) {
	// Restrictions belong to a thread, and the kernel sends the death signal when
	// the thread that started the child ends.
	runtime.LockOSThread()
	if err := peer.Mark(); err != nil {
		return 0, err
	}
	if err := checkFiles(); err != nil {
		return 0, err
	}
	if err := leaveTerminal(); err != nil {
		return 0, err
	}
	if o.Level.Namespaces {
		return enterNamespaces(o, argv)
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return 0, notStarted(argv[0], err)
	}
	to, err := reachOf(o)
	if err != nil {
		return 0, err
	}
	if err := restrict(o.Level, to); err != nil {
		return 0, err
	}
	return 0, notStarted(argv[0], syscall.Exec(program, argv, os.Environ()))
}

// enterNamespaces starts the first process of the namespaces. Both stay in the
// command's process group, so that a signal to the group reaches the command
// itself, and nothing needs to be passed on.
func enterNamespaces(o order, argv []string) (int, error) {
	outlive()
	again, err := o.argv(innerArg, argv)
	if err != nil {
		return 0, err
	}
	verdict, told, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer verdict.Close()
	cmd := exec.Command(again[0], again[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{told}
	cmd.SysProcAttr = namespaces(o.Level)
	err = cmd.Start()
	told.Close()
	if err != nil {
		return 0, fmt.Errorf("make namespaces: %w", err)
	}
	cmd.Wait() // the status has more information than the error
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if said, err := readVerdict(verdict); err == nil {
		status = said
	}
	return endAs(status), nil
}

// namespaces returns the attributes that start a process in new namespaces. The kernel
// kills that process when this one dies, and then all others in the namespaces.
func namespaces(l Level) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL}
	if l.User {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE} // needed to mount; the command does not get these capabilities
	}
	return attr
}

// outlive keeps signals that are meant for the command from ending this process first.
// It catches them, because the command would inherit ignored signals.
func outlive() {
	caught := make(chan os.Signal, 1)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
}
