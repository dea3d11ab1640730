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

// The first process of a PID namespace cannot end by a signal of its own, so it
// tells its parent outside how the command ended, and that ends the same way.

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
	// The core, if any, was the command's to leave. A limit that cannot be lowered
	// leaves one of this process, and changes nothing else.
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	var byDefault [4]uint64 // a zero struct sigaction
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(status.Signal()), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	unix.Tgkill(os.Getpid(), unix.Gettid(), status.Signal())
	return 128 + int(status.Signal())
}

// checkParent fails if the process that started this one is gone: it died before
// the kernel was told to end this one with it.
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
