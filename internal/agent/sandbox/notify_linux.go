package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A notice is a call of a process under the filter of reportRenames, which waits for an answer. It is
// struct seccomp_notif of the kernel.
type notice struct {
	id    uint64
	pid   uint32
	flags uint32
	call  int32
	arch  uint32
	at    uint64
	args  [6]uint64
}

// An answer ends a call. It is struct seccomp_notif_resp of the kernel.
type answer struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// byKernel is the flag of an answer that lets the kernel carry out the call.
const byKernel = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE

// ownCall marks a renameat2 that the filter lets pass. It is in the half of an argument that the
// kernel ignores. It gives no rights: the kernel then refuses what it always refuses.
const ownCall = 0x6c6b6d76

// plainRenames has the numbers of rename and renameat, which each architecture may have.
var plainRenames = map[string][]uint32{"amd64": {82, 264}, "arm64": {38}}

// reportFlags ask for reports of calls. Before 5.19 the kernel does not know the second flag. There a
// signal would interrupt a rename that is under way, and programs do not expect that.
const reportFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// RenamesLower reports whether a command can rename directories of lower layers here. The kernel
// checks the flags before it finds that there is no filter.
func RenamesLower() bool {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, reportFlags, 0)
	return errno == unix.EFAULT && len(abis[runtime.GOARCH]) > 0
}

// reportRenames installs a filter that reports the renames of the command, and returns the file from which
// notices are read. The filter holds for the calling thread and what it starts. If the kernel
// cannot report calls, the result is nil.
func reportRenames() *os.File {
	list := abis[runtime.GOARCH]
	if len(list) == 0 {
		return nil
	}
	program := reportProgram(list[0].audit, plainRenames[runtime.GOARCH])
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, reportFlags, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return nil
	}
	// Answers are faster if the waiting process continues on the same processor. Before 6.6 this
	// fails.
	unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return os.NewFile(fd, "renames")
}

func reportProgram(audit uint32, plain []uint32) []unix.SockFilter {
	const offsetFlags = 16 + 4*8 + 4 // the upper half of the fifth argument
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	skip := func(value uint32, yes, no int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jt: uint8(yes), Jf: uint8(no)}
	}
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	report := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF}
	program := []unix.SockFilter{load(offsetArch), skip(audit, 1, 0), allow, load(offsetCall)}
	for _, call := range plain {
		program = append(program, skip(call, 0, 1), report)
	}
	return append(program, skip(unix.SYS_RENAMEAT2, 1, 0), allow, load(offsetFlags), skip(ownCall, 0, 1), allow, report)
}

// receive waits for a notice.
func receive(from *os.File) (n notice, err error) {
	for {
		n = notice{} // the kernel demands zeros
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, from.Fd(), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
		switch errno {
		case 0:
			return n, nil
		case unix.EINTR, unix.ENOENT: // ENOENT: the process was killed
		default:
			return n, fmt.Errorf("receive a call: %w", errno)
		}
	}
}

// waiting reports whether receive would return at once.
func waiting(from *os.File) bool {
	ready := []unix.PollFd{{Fd: int32(from.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, 0)
	return err == nil && n > 0 && ready[0].Revents&unix.POLLIN != 0
}

// reply answers a notice. If the process was killed, there is nothing to do.
func reply(to *os.File, a answer) {
	unix.Syscall(unix.SYS_IOCTL, to.Fd(), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
}

// valid reports whether the process of a notice still waits. If so, its number was not reused, and
// what was read of it before is right.
func (n notice) valid(from *os.File) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, from.Fd(), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&n.id)))
	return errno == 0
}

var errLong = errors.New("no path")

// text reads a path from the memory of the process.
func (n notice) text(address uint64) (string, error) {
	var path [unix.PathMax]byte
	page := uint64(os.Getpagesize())
	first := int(min(page-address%page, unix.PathMax)) // the next page may be missing
	here := []unix.Iovec{{Base: &path[0], Len: unix.PathMax}}
	there := []unix.RemoteIovec{{Base: uintptr(address), Len: first}, {Base: uintptr(address) + uintptr(first), Len: unix.PathMax - first}}
	size, err := unix.ProcessVMReadv(int(n.pid), here, there, 0)
	if err != nil {
		return "", err
	}
	for i, b := range path[:size] {
		if b == 0 {
			return string(path[:i]), nil
		}
	}
	return "", errLong
}
