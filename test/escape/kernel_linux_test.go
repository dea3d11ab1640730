package escape

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keyName returns the name of the key that a victim adds to the user's keyring.
func keyName(pid int) string { return fmt.Sprint("lk-escape-", pid) }

func kernelAttempts() []attempt {
	writing := func(path string) func(*world) error { return func(*world) error { return openForWriting(path) } }
	return []attempt{
		{name: "mount a file system", root: true, apart: true, try: func(*world) error {
			if err := os.MkdirAll("mounted", 0o755); err != nil {
				return err
			}
			defer os.Remove("mounted")
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil { // so that a success does no harm
				return err
			}
			return unix.Mount("none", "mounted", "tmpfs", 0, "")
		}},
		{name: "mount by the newer calls", root: true, try: func(*world) error {
			fd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}},
		{name: "make the shared tree writable again", root: true, apart: true, try: func(w *world) error {
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return err
			}
			if err := unix.Mount(w.Root, w.Root, "", unix.MS_BIND, ""); err != nil {
				return err
			}
			return create(filepath.Join(w.Root, "app/created.txt"))
		}},
		{name: "change the root directory", root: true, apart: true, try: func(w *world) error {
			if err := os.MkdirAll("jail", 0o755); err != nil {
				return err
			}
			here, err := os.Open(".")
			if err != nil {
				return err
			}
			defer unix.Unlinkat(int(here.Fd()), "jail", unix.AT_REMOVEDIR)
			if err := errors.Join(unix.Chroot("jail"), unix.Chdir(strings.Repeat("../", 64)), unix.Chroot(".")); err != nil {
				return err
			}
			return openForWriting(filepath.Join(w.Root, "app/other.txt"))
		}},
		{name: "gain capabilities in a user namespace", apart: true, user: true, try: func(w *world) error {
			return inUserNamespace("umount -a 2>/dev/null; mount --rbind / /mnt && : >> " + filepath.Join(w.Root, "app/other.txt"))
		}},
		{name: "gain privileges by a set-user-ID program", try: func(*world) error {
			status, err := os.ReadFile("/proc/self/status")
			if err != nil {
				return err
			}
			if !strings.Contains(string(status), "NoNewPrivs:\t0") {
				return errors.New("none are gained any more")
			}
			return nil
		}},
		{name: "read the keys of the user", try: func(w *world) error {
			key, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", keyName(w.Victim.PID), 0)
			if err != nil {
				return err
			}
			text := make([]byte, 1024)
			n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, key, text, 0)
			return w.find(text[:max(0, min(n, len(text)))], err)
		}},
		{name: "run a program that has no file", try: func(w *world) error {
			fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
			if err != nil {
				return err
			}
			f := os.NewFile(uintptr(fd), "program")
			defer f.Close()
			if _, err := f.WriteString("#!/bin/sh\n: >> " + filepath.Join(w.Root, "app/other.txt") + "\n"); err != nil {
				return err
			}
			cmd := exec.Command("/bin/sh", "/dev/fd/3")
			cmd.ExtraFiles = []*os.File{f}
			if _, err := f.Seek(0, 0); err != nil {
				return err
			}
			return cmd.Run()
		}},
		{name: "choose what runs when a program crashes", root: true, try: writing("/proc/sys/kernel/core_pattern")},
		{name: "press keys of the kernel", root: true, try: writing("/proc/sysrq-trigger"), moot: missing("/proc/sysrq-trigger")},
		{name: "change a setting of the kernel", root: true, try: writing("/sys/kernel/mm/transparent_hugepage/enabled"), moot: missing("/sys/kernel/mm/transparent_hugepage/enabled")},
		{name: "write into the log of the kernel", root: true, try: writing("/dev/kmsg"), moot: missing("/dev/kmsg")},
		{name: "write to the console", root: true, try: func(*world) error {
			fd, err := unix.Open("/dev/console", unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}, moot: missing("/dev/console")},
		{name: "read the memory of the kernel", root: true, try: func(*world) error { return openForReading("/proc/kcore") }, moot: missing("/proc/kcore")},
		{name: "read the disk", root: true, try: func(*world) error { return openForReading(disk()) }, moot: missing(disk())},
		{name: "name the machine", root: true, try: func(*world) error {
			var now unix.Utsname
			if err := unix.Uname(&now); err != nil {
				return err
			}
			return unix.Sethostname([]byte(unix.ByteSliceToString(now.Nodename[:])))
		}},
		{name: "change the network", root: true, try: func(*world) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			loopback, err := unix.NewIfreq("lo")
			if err != nil {
				return err
			}
			if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, loopback); err != nil {
				return err
			}
			return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, loopback) // to what they are
		}},
		{name: "be asked before files are opened", root: true, try: func(*world) error {
			fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}, moot: lacks(unix.CAP_SYS_ADMIN)},
		{name: "open the mounts of another process by their handle", try: func(w *world) error {
			fd, err := unix.OpenByHandleAt(unix.FD_NSFS_ROOT, unix.NewFileHandle(w.MountsOf, w.Mounts), unix.O_RDONLY)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}, moot: func(level) string {
			if _, _, err := unix.NameToHandleAt(unix.AT_FDCWD, "/proc/self/ns/mnt", unix.AT_SYMLINK_FOLLOW); err != nil {
				return "this kernel has no handles of namespaces: " + err.Error()
			}
			return ""
		}, open: func(l level) string {
			if l.alone() {
				return "they are its own, too"
			}
			return ""
		}},
		{name: "make a device", root: true, try: func(*world) error {
			defer os.Remove("device")
			return unix.Mknod("device", unix.S_IFBLK|0o600, int(unix.Mkdev(1, 0)))
		}},
		{name: "load a program into the kernel", root: true, try: func(*world) error {
			attr := [64]uint32{1, 4, 8, 1} // a hash map
			fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), 72)
			if errno != 0 {
				return errno
			}
			return unix.Close(int(fd))
		}},
		{name: "set the clock", root: true, try: func(*world) error {
			var now unix.Timex // mode 0 only reads, which needs no privilege
			if _, err := unix.Adjtimex(&now); err != nil {
				return err
			}
			now.Modes = unix.ADJ_TICK
			_, err := unix.Adjtimex(&now) // sets the clock to its current value
			return err
		}},
	}
}

// disk returns the device file of a disk of this machine, or a name that does not exist.
func disk() string {
	devices, _ := filepath.Glob("/sys/class/block/*")
	for _, device := range devices {
		path := filepath.Join("/dev", filepath.Base(device))
		var info unix.Stat_t
		if unix.Stat(path, &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFBLK {
			return path
		}
	}
	return "/dev/disk-of-none"
}

func openForReading(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// inUserNamespace runs a script as root of a new user namespace.
func inUserNamespace(script string) error {
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}}
	return cmd.Run()
}
