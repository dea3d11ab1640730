package escape

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Features that a machine may lack.
const (
	nothing    = "nothing"
	namespaces = "namespaces"
	landlock   = "landlock"
)

// withoutMain runs a command and its children on a machine that lacks the feature in the first
// argument.
func withoutMain() int {
	runtime.LockOSThread() // a filter belongs to a thread, and exec keeps that of the calling thread
	err := withhold(os.Args[1])
	if err == nil {
		err = syscall.Exec(os.Args[2], os.Args[2:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "without", os.Args[1], err)
	return 1
}

// withhold makes the kernel refuse the system calls of a feature.
func withhold(what string) error {
	const (
		number, flags = 0, 16 // offsets in the data of a filter; flags is the first argument
		load          = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal         = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		anyOf         = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		end           = unix.BPF_RET | unix.BPF_K
		allow         = 0x7fff0000
		fail          = 0x00050000 // returns an error number
		kinds         = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID
	)
	var filter []unix.SockFilter
	switch what {
	case nothing:
		return nil
	case landlock:
		filter = []unix.SockFilter{
			{Code: load, K: number},
			{Code: equal, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
			{Code: end, K: fail | uint32(unix.EOPNOTSUPP)},
			{Code: end, K: allow},
		}
	case namespaces:
		filter = []unix.SockFilter{
			{Code: load, K: number},
			{Code: equal, K: unix.SYS_CLONE3, Jt: 5}, // a filter cannot see its flags; callers fall back to clone
			{Code: equal, K: unix.SYS_CLONE, Jt: 1},
			{Code: equal, K: unix.SYS_UNSHARE, Jf: 4},
			{Code: load, K: flags},
			{Code: anyOf, K: kinds, Jf: 2},
			{Code: end, K: fail | uint32(unix.EPERM)},
			{Code: end, K: fail | uint32(unix.ENOSYS)},
			{Code: end, K: allow},
		}
	default:
		return fmt.Errorf("no machine lacks %q", what)
	}
	if os.Geteuid() != 0 {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
