package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
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
		return fmt.Errorf("renounce privileges: %w", err)
	}
	if l.Landlock > 0 {
		if err := landlock(l.Landlock, to); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return filterCalls()
}

// dropCapabilities keeps only keptCapabilities. Programs cannot regain the others, since
// privileges were renounced.
func dropCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&head, &has[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	kept := [2]uint32{keptCapabilities & (1<<32 - 1), keptCapabilities >> 32}
	if os.Geteuid() != 0 {
		kept = [2]uint32{} // drops those of a user namespace
	}
	for i := range has {
		has[i] = unix.CapUserData{Effective: has[i].Effective & kept[i], Permitted: has[i].Permitted & kept[i]}
	}
	if err := unix.Capset(&head, &has[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
