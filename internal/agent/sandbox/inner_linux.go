package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// verdictFD is the pipe through which the parent outside learns how the command ended.
const verdictFD = 3

// inner is the second stage, the first process of the namespaces. It makes the root that the
// command sees, starts the command, and reaps ended processes. When it ends, the kernel kills all
// other processes of the namespace and waits until they are gone.
func inner(o order, argv []string) (int, error) {
	if os.Getpid() != 1 {
		return 0, errors.New("not the first process of a namespace") // mounts of any other process would affect every process
	}
	verdict := os.NewFile(verdictFD, "verdict")
	unix.CloseOnExec(verdictFD)
	if err := checkParent(verdict); err != nil {
		return 0, err
	}
	outlive()
	// The unrestricted threads of this process share their memory with the restricted
	// one. No process inside may access it.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("protect the memory of the sandbox: %w", err)
	}
	_, missing := exec.LookPath(argv[0])
	writable, err := enterRoot(o, argv)
	if err != nil {
		return 0, err
	}
	if _, err := exec.LookPath(argv[0]); err != nil && missing == nil {
		return 0, notStarted(argv[0], lockkeeper.WithNext(fmt.Errorf("%w: the sandbox does not show it", fs.ErrNotExist), "add its directory to agent.read in lockkeeper.yaml"))
	}
	pid, renames, err := start(o.Level, reach{write: writable}, argv, o.changesOverlays())
	if err != nil {
		return 0, err
	}
	status, err := reapUntil(pid)
	if err != nil {
		return 0, err
	}
	if renames != nil {
		renames.stop()
	}
	if err := binary.Write(verdict, binary.NativeEndian, uint32(status)); err != nil {
		return 0, fmt.Errorf("report how the command ended: %w", err)
	}
	return 0, nil
}

// start restricts a thread and starts the command from it, because a child inherits the
// restrictions of the thread that makes it. If the command changes overlays, that thread then
// serves its renames. Otherwise it ends.
func start(l Level, to reach, argv []string, serve bool) (pid int, renames *renamer, err error) {
	started := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if pid, renames, err = startHere(l, to, argv, serve); err != nil || renames == nil {
			close(started)
			return
		}
		close(started)
		if err := renames.serve(); err != nil {
			fmt.Fprintln(os.Stderr, "sandbox: directories cannot be renamed:", err)
		}
	}()
	<-started
	return pid, renames, err
}

// startHere restricts the calling thread for good and starts the command.
func startHere(l Level, to reach, argv []string, serve bool) (pid int, renames *renamer, err error) {
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return 0, nil, notStarted(argv[0], err)
	}
	if err := restrict(l, to); err != nil {
		return 0, nil, err
	}
	if serve {
		if renames, err = newRenamer(); err != nil {
			return 0, nil, err
		}
	}
	pid, err = syscall.ForkExec(program, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 0, nil, notStarted(argv[0], err)
	}
	return pid, renames, nil
}

// reapUntil reaps the processes that end in the namespace until the command ends.
func reapUntil(command int) (syscall.WaitStatus, error) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for the command: %w", err)
		case pid == command:
			return status, nil
		}
	}
}

// readVerdict reads how the command ended. The first process of a PID namespace cannot end itself
// by a signal. So it sends the status to its parent outside, which ends the same way.
func readVerdict(from io.Reader) (syscall.WaitStatus, error) {
	var status uint32
	err := binary.Read(from, binary.NativeEndian, &status)
	return syscall.WaitStatus(status), err
}

// endAs ends this process by the signal that ended the command, or returns the
// command's exit code.
func endAs(status syscall.WaitStatus) int {
	if !status.Signaled() {
		return status.ExitStatus()
	}
	// Only the command should leave a core file. If the limit cannot be lowered, this process may
	// leave one, too, which does no harm.
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	var byDefault [4]uint64 // a zero struct sigaction stands for the default action
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(status.Signal()), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	unix.Tgkill(os.Getpid(), unix.Gettid(), status.Signal())
	return 128 + int(status.Signal())
}

// checkParent fails if the parent process is gone. The parent may die before the kernel is told
// to end this process with it.
func checkParent(verdict *os.File) error {
	ready := []unix.PollFd{{Fd: int32(verdict.Fd())}}
	if _, err := unix.Poll(ready, 0); err != nil {
		return fmt.Errorf("look for the parent: %w", err)
	}
	if ready[0].Revents != 0 {
		return errors.New("the supervisor is gone")
	}
	return nil
}
