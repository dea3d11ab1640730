package escape

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keyName is the name of the key that the test adds to the user's keyring.
const keyName = "lockkeeper-escape"

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
			key, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", keyName, 0)
			if err != nil {
				return err
			}
			text := make([]byte, 1024)
			n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, key, text, 0)
			return w.find(text[:max(0, min(n, len(text)))], err)
		}},
		{name: "open ~ through io_uring", try: func(w *world) error { return ringOpen(filepath.Join(w.Home, homeSecrets[0]), unix.O_RDONLY) }},
		{name: "open the shared tree for writing through io_uring", try: func(w *world) error {
			return ringOpen(filepath.Join(w.Root, "app/other.txt"), unix.O_WRONLY)
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

// inUserNamespace runs a script as root of a new user namespace.
func inUserNamespace(script string) error {
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}}
	return cmd.Run()
}

// ringOpen opens a file through io_uring instead of a system call.
func ringOpen(path string, flags uint32) error {
	const (
		single, opcodeOpen, getEvents = 1, 18, 1 // from linux/io_uring.h
		ringOffset, entriesOffset     = 0, 0x10000000
	)
	var p struct { // struct io_uring_params
		entries, cqEntries, flags, cpu, idle, features, wq, _, _, _ uint32
		sq                                                          struct{ head, tail, mask, entries, flags, dropped, array, _, _, _ uint32 }
		cq                                                          struct{ head, tail, mask, entries, overflow, cqes, flags, _, _, _ uint32 }
	}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, single, uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(fd))
	ring, err := unix.Mmap(int(fd), ringOffset, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(ring)
	entry, err := unix.Mmap(int(fd), entriesOffset, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(entry)
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	at := func(memory []byte, offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&memory[offset])) }
	entry[0] = opcodeOpen
	*at(entry, 4) = 0xffffff9c // AT_FDCWD
	*(*uintptr)(unsafe.Pointer(&entry[16])) = uintptr(unsafe.Pointer(name))
	*at(entry, 28) = flags
	*at(ring, p.sq.array) = 0
	*at(ring, p.sq.tail) = 1
	if _, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, fd, 1, 1, getEvents, 0, 0); errno != 0 {
		return errno
	}
	result := int32(*at(ring, p.cq.cqes+8))
	if result < 0 {
		return syscall.Errno(-result)
	}
	return unix.Close(int(result))
}
