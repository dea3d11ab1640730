package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An abi is one interface for system calls, with the numbers of the filtered calls.
type abi struct {
	audit uint32
	ioctl uint32
	keys  [3]uint32 // add_key, request_key, keyctl
}

// abis lists the interfaces that a kernel for each architecture offers.
var abis = map[string][]abi{
	"amd64": {{unix.AUDIT_ARCH_X86_64, 16, [3]uint32{248, 249, 250}}, {unix.AUDIT_ARCH_I386, 54, [3]uint32{286, 287, 288}}},
	"arm64": {{unix.AUDIT_ARCH_AARCH64, 29, [3]uint32{217, 218, 219}}, {unix.AUDIT_ARCH_ARM, 54, [3]uint32{309, 310, 311}}},
}

// x32 marks the calls of a third interface on amd64, which no program needs.
const x32 = 0x40000000

// These are offsets in struct seccomp_data.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArg1 = 24 // the lower half, on little-endian machines
)

// filterCalls makes system calls fail with EPERM if they type into a terminal (TIOCSTI,
// TIOCLINUX) or use the kernel's key rings. For terminals it is a second protection, for key
// rings the only one.
func filterCalls() error {
	list := abis[runtime.GOARCH]
	if len(list) == 0 {
		return nil
	}
	program := filterProgram(list)
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}

func filterProgram(list []abi) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(test uint16, value uint32, yes, no int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: value, Jt: uint8(yes), Jf: uint8(no)}
	}
	answer := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	const block = 12 // instructions for one abi
	program := []unix.SockFilter{load(offsetArch)}
	for _, a := range list {
		program = append(program,
			jump(unix.BPF_JEQ, a.audit, 0, block-1),
			load(offsetCall),
			jump(unix.BPF_JGE, x32, 7, 0), // to EPERM
			jump(unix.BPF_JEQ, a.keys[0], 6, 0),
			jump(unix.BPF_JEQ, a.keys[1], 5, 0),
			jump(unix.BPF_JEQ, a.keys[2], 4, 0),
			jump(unix.BPF_JEQ, a.ioctl, 0, 4), // anything else is allowed
			load(offsetArg1),
			jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0),
			jump(unix.BPF_JEQ, unix.TIOCLINUX, 0, 1),
			answer(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)),
			answer(unix.SECCOMP_RET_ALLOW),
		)
	}
	return append(program, answer(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)))
}
