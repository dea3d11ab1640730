package sandbox

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// sharedMemory is the directory in which programs share memory by name.
const sharedMemory = "/dev/shm"

// pseudoTerminals is the directory of pseudo-terminals. With namespaces, a command
// has its own.
const pseudoTerminals = "/dev/pts"

// devices are the devices that every command may use, because they store nothing. A command has
// no controlling terminal, so /dev/tty leads only to one that it made itself.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// keyLists are files that list the keys of the kernel's key rings by name.
var keyLists = []string{"/proc/keys", "/proc/key-users"}

// deviceLinks are the other names that programs expect in /dev.
var deviceLinks = map[string]string{"/dev/ptmx": "pts/ptmx", "/dev/fd": "/proc/self/fd",
	"/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"}

// addKernel adds the directories that the kernel fills: the namespace's own processes, a few
// devices, and private pseudo-terminals and shared memory.
func (r *root) addKernel() error {
	attr := unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	if os.Geteuid() == 0 {
		attr |= unix.MOUNT_ATTR_RDONLY // root could change settings of the kernel through a writable mount
	}
	if err := r.add("/proc", "proc", nil, attr); err != nil {
		return err
	}
	if os.Geteuid() == 0 { // other users see only their own keys, and may need a whole /proc to nest a sandbox
		for _, path := range keyLists {
			if err := r.hide(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if err := r.seal("/dev", "755"); err != nil {
		return err
	}
	for _, path := range devices {
		err := r.bind(path, path, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			r.writable = append(r.writable, path)
		}
	}
	if err := r.add(pseudoTerminals, "devpts", map[string]string{"newinstance": "", "ptmxmode": "0666", "mode": "620"}, unix.MOUNT_ATTR_NOEXEC); err != nil {
		return err
	}
	if err := r.add(sharedMemory, "tmpfs", map[string]string{"mode": "1777"}, unix.MOUNT_ATTR_NODEV); err != nil {
		return err
	}
	for path, text := range deviceLinks {
		r.points[path] = &mountPoint{link: text}
	}
	r.writable = append(r.writable, pseudoTerminals, sharedMemory)
	return nil
}
