package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keptCapabilities are those that root keeps: what an ordinary container has,
// without the making of devices. Others could undo the sandbox, or the system.
const keptCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_NET_BIND_SERVICE |
	1<<unix.CAP_NET_RAW | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_AUDIT_WRITE | 1<<unix.CAP_SETFCAP

// What Landlock is asked to deny, by the version that can. Devices cannot be
// made even where writing is permitted: root would reach its disk through one.
const (
	fileRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	dirRights  = fileRights | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	deviceMaking = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// devices may be written by everybody: they keep nothing, or are terminals, or
// memory that programs share.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
	"/dev/tty", "/dev/ptmx", "/dev/pts", sharedMemory}

// restrict takes from the calling thread, and from what it executes, all but
// the rights of the order, for good.
func restrict(o order) error {
	// What was opened before keeps its rights, so it must not reach the command.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close files: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("renounce privileges: %w", err)
	}
	if o.Level.Landlock > 0 {
		if err := landlock(o); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	return dropCapabilities()
}

// dropCapabilities keeps no more than keptCapabilities; programs cannot give
// them back, since privileges were renounced.
func dropCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&head, &has[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	kept := [2]uint32{keptCapabilities & (1<<32 - 1), keptCapabilities >> 32}
	if os.Geteuid() != 0 {
		kept = [2]uint32{} // those of a user namespace
	}
	for i := range has {
		has[i] = unix.CapUserData{Effective: has[i].Effective & kept[i], Permitted: has[i].Permitted & kept[i]}
	}
	if err := unix.Capset(&head, &has[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// landlockVersion asks the kernel, 0: it has none.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// landlock restricts the calling thread: it writes where the order says, to
// devices, and to what it was given as its output.
func landlock(o order) error {
	file, dir, rest, scoped := uint64(fileRights), uint64(dirRights), uint64(deviceMaking), uint64(0)
	if o.Level.Landlock >= 2 {
		dir |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if o.Level.Landlock >= truncates {
		file |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if o.Level.Landlock >= 5 {
		rest |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if o.Level.Landlock >= scopes {
		scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	dir |= file
	attr := unix.LandlockRulesetAttr{Handled_access_fs: dir | rest, Scoped: scoped}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("make rules: %w", errno)
	}
	rules := os.NewFile(fd, "landlock")
	defer rules.Close()

	rights := func(mode os.FileMode, extra uint64) uint64 {
		if mode.IsDir() {
			return dir | extra
		}
		return file | extra
	}
	for _, path := range o.Write {
		if err := permitPath(rules, path, func(mode os.FileMode) uint64 { return rights(mode, 0) }); err != nil {
			return err
		}
	}
	ioctl := rest & unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	for _, path := range devices {
		err := permitPath(rules, path, func(mode os.FileMode) uint64 { return rights(mode, ioctl) })
		missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) // or leads to another of them
		if err != nil && !missing {
			return err
		}
	}
	for _, given := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if err := permitGiven(rules, given, file, ioctl); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules.Fd(), 0, 0); errno != 0 {
		return fmt.Errorf("apply rules: %w", errno)
	}
	return nil
}

// permitPath adds a rule for a path, with the rights for its kind.
func permitPath(rules *os.File, path string, rights func(os.FileMode) uint64) error {
	f, err := openPath(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return permit(rules, f, rights(info.Mode()))
}

// permitGiven lets the command open again, as /dev/stdout, what it was given
// open for writing.
func permitGiven(rules, given *os.File, file, ioctl uint64) error {
	info, err := given.Stat()
	if errors.Is(err, unix.EBADF) {
		return nil // it was given none
	}
	if err != nil {
		return err
	}
	flags, err := unix.FcntlInt(given.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return fmt.Errorf("look at %s: %w", given.Name(), err)
	}
	switch {
	case flags&unix.O_ACCMODE == unix.O_RDONLY:
		return nil
	case info.Mode().IsRegular():
		return permit(rules, given, file)
	case info.Mode()&os.ModeCharDevice != 0:
		return permit(rules, given, file|ioctl)
	}
	return nil // pipes and sockets need no right
}

func permit(rules, f *os.File, rights uint64) error {
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(f.Fd())}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("permit %s: %w", f.Name(), errno)
	}
	return nil
}
