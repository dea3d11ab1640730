package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"lockkeeper"

	"golang.org/x/sys/unix"
)

// verdictFD is the pipe through which the parent outside learns how the command ended.
const verdictFD = 3

// inner is the second stage, the first process of the namespaces. It makes the root that the
// command sees, starts the command, and reaps ended processes. When it ends, the kernel kills all
// other processes of the namespace and waits until they are gone.
func inner(o order, argv []string) (int, error) {
	if os.Getpid() != 1 {
		return 0, errors.New("not the first process of a namespace") // its mounts would affect every process
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
	pid, err := start(o.Level, reach{write: writable}, argv)
	if err != nil {
		return 0, err
	}
	status, err := reapUntil(pid)
	if err != nil {
		return 0, err
	}
	if err := binary.Write(verdict, binary.NativeEndian, uint32(status)); err != nil {
		return 0, fmt.Errorf("report how the command ended: %w", err)
	}
	return 0, nil
}

// start restricts a thread and starts the command from it, because a child inherits the
// restrictions of the thread that makes it.
func start(l Level, to reach, argv []string) (pid int, err error) {
	runtime.LockOSThread()
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return 0, notStarted(argv[0], err)
	}
	if err := restrict(l, to); err != nil {
		return 0, err
	}
	pid, err = syscall.ForkExec(program, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 0, notStarted(argv[0], err)
	}
	return pid, nil
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
