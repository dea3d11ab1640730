package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
	var byDefault [4]uint64 // a zero struct sigaction
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
