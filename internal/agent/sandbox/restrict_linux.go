package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// keptCapabilities are the capabilities that root keeps. An ordinary container has the same, plus
// making devices and raw sockets, which show all packets of this machine. Other capabilities
// could undo the sandbox or damage the system.
const keptCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_NET_BIND_SERVICE |
	1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_AUDIT_WRITE | 1<<unix.CAP_SETFCAP

// restrict permanently removes from the calling thread, and from programs that it executes, every
// right that a command does not need.
func restrict(l Level, to reach) error {
	// Open files keep their rights, so the command must not inherit them.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close files: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	if l.Landlock > 0 {
		if err := landlock(l.Landlock, to); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return filterCalls(l)
}

// dropCapabilities keeps only keptCapabilities. Programs cannot regain the others, because the
// thread cannot gain privileges (no_new_privs).
func dropCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&head, &has[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	kept := [2]uint32{keptCapabilities & (1<<32 - 1), keptCapabilities >> 32}
	if os.Geteuid() != 0 {
		kept = [2]uint32{} // an ordinary user has capabilities only in a user namespace; drop them all
	}
	for i := range has {
		has[i] = unix.CapUserData{Effective: has[i].Effective & kept[i], Permitted: has[i].Permitted & kept[i]}
	}
	if err := unix.Capset(&head, &has[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// An abi is one interface for system calls, with the numbers of the filtered calls.
type abi struct {
	audit  uint32
	ioctl  uint32
	keys   [3]uint32 // add_key, request_key, keyctl
	limits uint32    // prlimit64
}

// clone3 has the same number in every interface.
const clone3 = 435

// abis lists the interfaces that a kernel for each architecture offers.
var abis = map[string][]abi{
	"amd64": {{unix.AUDIT_ARCH_X86_64, 16, [3]uint32{248, 249, 250}, 302}, {unix.AUDIT_ARCH_I386, 54, [3]uint32{286, 287, 288}, 340}},
	"arm64": {{unix.AUDIT_ARCH_AARCH64, 29, [3]uint32{217, 218, 219}, 261}, {unix.AUDIT_ARCH_ARM, 54, [3]uint32{309, 310, 311}, 369}},
}

// x32 marks the calls of a third interface on amd64, which no program needs.
const x32 = 0x40000000

// These are offsets in struct seccomp_data.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArg0 = 16 // the lower half, on little-endian machines
	offsetArg1 = 24
)

// filterCalls makes system calls fail that Landlock and namespaces do not hold:
//
//   - EPERM: typing into a terminal (TIOCSTI, TIOCLINUX), which is a second protection, and the
//     kernel's key rings. Without namespaces, also the limits of another process, which carry the
//     marks of sandboxes and keepers.
//   - ENOSYS: clone3, which starts a process in any control group that the user may write, even
//     through a read-only mount. Callers then use clone.
func filterCalls(l Level) error {
	list := abis[runtime.GOARCH]
	if len(list) == 0 {
		return nil
	}
	program := filterProgram(list, l.Namespaces)
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}

func filterProgram(list []abi, namespaces bool) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(test uint16, value uint32, yes, no int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: value, Jt: uint8(yes), Jf: uint8(no)}
	}
	answer := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	// These are the positions of the last instructions for one abi. The distance of a jump counts
	// from the next instruction.
	const block, refuse, missing, allow = 17, 14, 15, 16
	program := []unix.SockFilter{load(offsetArch)}
	for _, a := range list {
		limits := a.limits
		if namespaces {
			limits = x32 // no call number that reaches this instruction has this value
		}
		program = append(program,
			jump(unix.BPF_JEQ, a.audit, 0, block-1),
			load(offsetCall),
			jump(unix.BPF_JGE, x32, refuse-3, 0),
			jump(unix.BPF_JEQ, a.keys[0], refuse-4, 0),
			jump(unix.BPF_JEQ, a.keys[1], refuse-5, 0),
			jump(unix.BPF_JEQ, a.keys[2], refuse-6, 0),
			jump(unix.BPF_JEQ, clone3, missing-7, 0),
			jump(unix.BPF_JEQ, limits, 0, 2),
			load(offsetArg0),
			jump(unix.BPF_JEQ, 0, allow-10, refuse-10), // 0 is the calling process
			jump(unix.BPF_JEQ, a.ioctl, 0, allow-11),
			load(offsetArg1),
			jump(unix.BPF_JEQ, unix.TIOCSTI, refuse-13, 0),
			jump(unix.BPF_JEQ, unix.TIOCLINUX, refuse-14, allow-14),
			answer(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)),
			answer(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)),
			answer(unix.SECCOMP_RET_ALLOW),
		)
	}
	return append(program, answer(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)))
}

// leaveTerminal gives up the controlling terminal of this process, and so of the command, which
// could otherwise type into it. The session and the process group stay the same, so signals to
// the group still reach the command.
func leaveTerminal() error {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil // the process has no terminal
	}
	defer unix.Close(fd)
	if _, err := unix.IoctlRetInt(fd, unix.TIOCNOTTY); err != nil {
		return fmt.Errorf("leave the terminal: %w", err)
	}
	return nil
}

// checkFiles refuses standard files through which a command could reach a terminal or a directory
// that is not listed.
func checkFiles() error {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		info, err := f.Stat()
		if errors.Is(err, unix.EBADF) {
			continue
		}
		if err != nil {
			return err
		}
		if info.IsDir() {
			return fmt.Errorf("%s is a directory", f.Name())
		}
		if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err == nil {
			return lockkeeper.WithNext(fmt.Errorf("%s is a terminal", f.Name()), "give the command a file, a pipe or the null device")
		}
	}
	return nil
}
