package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A shared has what a process shares with others by the interfaces of System V and POSIX. All of
// it contains the secret.
type shared struct {
	Memory int    // id of shared memory
	Queue  int    // id of a message queue
	Named  string // file of shared memory with a name
	Posix  string // message queue with a name, or "" if this kernel has none
}

// maxMessage is the size of the messages, in bytes.
const maxMessage = 512

// sharedAttempts returns the attempts to read what another process shares.
func sharedAttempts() []attempt {
	alone := func(why string) func(level) string {
		return func(l level) string {
			if l.alone() {
				return why
			}
			return ""
		}
	}
	return []attempt{
		{name: "read the shared memory of another process", try: func(w *world) error {
			memory, err := unix.SysvShmAttach(w.Victim.Shared.Memory, 0, unix.SHM_RDONLY)
			if err != nil {
				return err
			}
			defer unix.SysvShmDetach(memory)
			return w.find(memory, nil)
		}, open: alone("Landlock has no rule for the interfaces of System V")},
		{name: "read a message to another process", try: func(w *world) error {
			m := new(message)
			_, _, errno := unix.Syscall6(unix.SYS_MSGRCV, uintptr(w.Victim.Shared.Queue), uintptr(unsafe.Pointer(m)), maxMessage, 0, unix.IPC_NOWAIT, 0)
			if errno != 0 {
				return errno
			}
			return w.find(m.text[:], nil)
		}, open: alone("Landlock has no rule for the interfaces of System V")},
		{name: "read shared memory by its name", try: func(w *world) error { return w.find(os.ReadFile(w.Victim.Shared.Named)) },
			open: alone("/dev/shm belongs to all processes")},
		{name: "read a message by the name of its queue", try: func(w *world) error {
			if w.Victim.Shared.Posix == "" {
				return unix.ENOSYS
			}
			fd, err := openQueue(w.Victim.Shared.Posix, unix.O_RDONLY|unix.O_NONBLOCK)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			text := make([]byte, maxMessage)
			n, _, errno := unix.Syscall6(unix.SYS_MQ_TIMEDRECEIVE, uintptr(fd), uintptr(unsafe.Pointer(&text[0])), maxMessage, 0, 0, 0)
			if errno != 0 {
				return errno
			}
			return w.find(text[:n], nil)
		}, moot: func(level) string {
			if fd, err := openQueue("lk-escape-none", unix.O_RDONLY); err == unix.ENOSYS {
				return err.Error()
			} else if err == nil {
				unix.Close(fd)
			}
			return ""
		}},
		{name: "be told about changes in ~", try: func(w *world) error {
			if _, err := os.Lstat(filepath.Join(w.Home, homeSecrets[0])); err != nil {
				return err // not the real home but another, empty directory
			}
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.InotifyAddWatch(fd, w.Home, unix.IN_ALL_EVENTS)
			return err
		}, open: alone("Landlock has no rule for watching files")},
	}
}

// A message is struct msgbuf.
type message struct {
	kind int64
	text [maxMessage]byte
}

// share shares a secret in every way. The result is removed by the returned function.
func share(secret []byte) (s shared, remove func(), err error) {
	remove = func() {
		unix.Syscall(unix.SYS_MSGCTL, uintptr(s.Queue), unix.IPC_RMID, 0)
		os.Remove(s.Named)
		if name, err := unix.BytePtrFromString(s.Posix); err == nil && s.Posix != "" {
			unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0)
		}
	}
	s.Queue = -1 // 0 is an id
	s.Memory, err = unix.SysvShmGet(unix.IPC_PRIVATE, os.Getpagesize(), unix.IPC_CREAT|0o600)
	if err != nil {
		return s, remove, err
	}
	memory, err := unix.SysvShmAttach(s.Memory, 0, 0)
	if err != nil {
		return s, remove, err
	}
	copy(memory, secret)
	if _, err := unix.SysvShmCtl(s.Memory, unix.IPC_RMID, nil); err != nil { // it stays while it is attached
		return s, remove, err
	}
	queue, _, errno := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, unix.IPC_CREAT|0o600, 0)
	if errno != 0 {
		return s, remove, errno
	}
	s.Queue = int(queue)
	m := &message{kind: 1}
	copy(m.text[:], secret)
	if _, _, errno := unix.Syscall6(unix.SYS_MSGSND, queue, uintptr(unsafe.Pointer(m)), maxMessage, unix.IPC_NOWAIT, 0, 0); errno != 0 {
		return s, remove, errno
	}
	name := fmt.Sprint("lk-escape-", os.Getpid())
	s.Named = filepath.Join("/dev/shm", name)
	if err := os.WriteFile(s.Named, secret, 0o600); err != nil {
		return s, remove, err
	}
	fd, err := openQueue(name, unix.O_WRONLY|unix.O_CREAT)
	if err == unix.ENOSYS {
		return s, remove, nil
	}
	if err != nil {
		return s, remove, err
	}
	s.Posix = name
	defer unix.Close(fd)
	if _, _, errno := unix.Syscall6(unix.SYS_MQ_TIMEDSEND, uintptr(fd), uintptr(unsafe.Pointer(&m.text[0])), maxMessage, 0, 0, 0); errno != 0 {
		return s, remove, errno
	}
	return s, remove, nil
}

// openQueue opens a message queue by its name, or creates it.
func openQueue(name string, flags int) (int, error) {
	at, err := unix.BytePtrFromString(name)
	if err != nil {
		return 0, err
	}
	attr := [8]int64{1: 1, 2: maxMessage} // struct mq_attr: one message
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(at)), uintptr(flags|unix.O_CLOEXEC), 0o600, uintptr(unsafe.Pointer(&attr)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}
