package escape

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of io_uring, from linux/io_uring.h.
const (
	ringConnect, ringOpen, ringSend, ringReceive, ringRename, ringSocket = 16, 18, 26, 27, 35, 45

	fixedFile = 1 // flag of an operation whose file is a slot of the ring
)

func ringAttempts() (list []attempt) {
	add := func(name string, try func(w *world) error, moot func(level) string) {
		list = append(list, attempt{name: name, moot: moot, try: func(w *world) error { return uninterrupted(func() error { return try(w) }) }})
	}
	add("open ~ through io_uring", func(w *world) error { return openByRing(filepath.Join(w.Home, homeSecrets[0]), unix.O_RDONLY) }, noRing)
	add("open the shared tree for writing through io_uring", func(w *world) error {
		return openByRing(filepath.Join(w.Root, "app/other.txt"), unix.O_WRONLY)
	}, noRing)
	add("rename in the shared tree through io_uring", func(w *world) error {
		file := filepath.Join(w.Root, "app/other.txt")
		if err := renameByRing(file, file+".moved"); err != nil {
			return err
		}
		return renameByRing(file+".moved", file)
	}, noRing)
	add("act as an admin at the server through io_uring", func(w *world) error { return askByRing(w, false) }, noRing)
	add("act as an admin at the server without a descriptor", func(w *world) error { return askByRing(w, true) },
		always("the server refuses clients that it cannot see"))
	return list
}

// noRing returns a reason if this machine has no io_uring for the user.
func noRing(l level) string {
	if text, err := os.ReadFile("/proc/sys/kernel/io_uring_disabled"); err == nil && (text[0] == '2' || text[0] == '1' && !l.root) {
		return "io_uring is switched off"
	}
	err := uninterrupted(func() error {
		r, err := newRing()
		if err == nil {
			r.close()
		}
		return err
	})
	if err != nil {
		return err.Error()
	}
	return ""
}

// uninterrupted calls f in a thread that gets no signals. The Go runtime sends many on a busy
// machine. They end system calls early, and the kernel cancels an operation of io_uring if it
// cannot start a worker between two of them.
func uninterrupted(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return err
	}
	err := f()
	return errors.Join(err, unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil))
}

// A ring is an io_uring that carries out one operation at a time, in one uninterrupted call.
type ring struct {
	fd             int
	queue, entries []byte
	p              ringParams
	count          uint32 // operations so far
	pinned         runtime.Pinner
}

// ringParams is struct io_uring_params.
type ringParams struct {
	entries, cqEntries, flags, cpu, idle, features, wq, _, _, _ uint32
	sq                                                          struct{ head, tail, mask, entries, flags, dropped, array, _, _, _ uint32 }
	cq                                                          struct{ head, tail, mask, entries, overflow, cqes, flags, _, _, _ uint32 }
}

// A ringEntry is struct io_uring_sqe.
type ringEntry struct {
	opcode, flags uint8
	_             uint16
	fd            int32
	offset, addr  uint64
	len, opFlags  uint32
	_             uint64
	_, _          uint16
	slot          uint32
	_, _          uint64
}

func newRing() (*ring, error) {
	const ringOffset, entriesOffset = 0, 0x10000000
	r := new(ring)
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&r.p)), 0)
	if errno != 0 {
		return nil, errno
	}
	r.fd = int(fd)
	var err error
	if r.queue, err = unix.Mmap(r.fd, ringOffset, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		r.entries, err = unix.Mmap(r.fd, entriesOffset, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		unix.Close(r.fd)
		return nil, err
	}
	return r, nil
}

func (r *ring) close() {
	unix.Close(r.fd) // its memory stays until this process ends
	r.pinned.Unpin()
}

// at returns the address of memory for the kernel.
func (r *ring) at(memory []byte) uint64 {
	r.pinned.Pin(&memory[0])
	return uint64(uintptr(unsafe.Pointer(&memory[0])))
}

// do carries out one operation and returns its result. The call that waits can end before the
// operation is complete, so only the ring's own count of results tells.
func (r *ring) do(e ringEntry) (int, error) {
	const getEvents = 1
	at := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.queue[offset])) }
	*(*ringEntry)(unsafe.Pointer(&r.entries[0])) = e
	*at(r.p.sq.array) = 0
	atomic.StoreUint32(at(r.p.sq.tail), r.count+1)
	for atomic.LoadUint32(at(r.p.cq.tail)) == r.count {
		submit := r.count + 1 - atomic.LoadUint32(at(r.p.sq.head))
		if _, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(submit), 1, getEvents, 0, 0); errno != 0 && errno != unix.EINTR {
			return 0, errno
		}
	}
	result := int32(*at(r.p.cq.cqes + 16*(r.count&*at(r.p.cq.mask)) + 8))
	r.count++
	atomic.StoreUint32(at(r.p.cq.head), r.count)
	if result < 0 {
		return 0, syscall.Errno(-result)
	}
	return int(result), nil
}

func openByRing(path string, flags uint32) error {
	r, err := newRing()
	if err != nil {
		return err
	}
	defer r.close()
	name, err := unix.ByteSliceFromString(path)
	if err != nil {
		return err
	}
	fd, err := r.do(ringEntry{opcode: ringOpen, fd: unix.AT_FDCWD, addr: r.at(name), opFlags: flags})
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func renameByRing(from, to string) error {
	r, err := newRing()
	if err != nil {
		return err
	}
	defer r.close()
	was, err := unix.ByteSliceFromString(from)
	is, err2 := unix.ByteSliceFromString(to)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	here := int32(unix.AT_FDCWD)
	_, err = r.do(ringEntry{opcode: ringRename, fd: here, addr: r.at(was), len: uint32(here), offset: r.at(is)})
	return err
}

// askByRing asks the first server for the identity of the client. If hidden is true, the
// connection is only in a slot of the ring, and no descriptor of a process leads to it.
func askByRing(w *world, hidden bool) error {
	server, err := url.Parse(w.Servers[0])
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(server.Port())
	if err != nil {
		return err
	}
	r, err := newRing()
	if err != nil {
		return err
	}
	defer r.close()
	socket := ringEntry{opcode: ringSocket, fd: unix.AF_INET, offset: unix.SOCK_STREAM}
	if hidden {
		const registerFiles, none = 2, -1
		slots := [1]int32{none}
		if _, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), registerFiles, uintptr(unsafe.Pointer(&slots)), 1, 0, 0); errno != 0 {
			return errno
		}
		socket.slot = 1 // the first slot
	}
	fd, err := r.do(socket)
	if err != nil {
		return fmt.Errorf("make a socket: %w", err)
	}
	use := func(e ringEntry) (int, error) {
		e.fd = int32(fd)
		if hidden {
			e.fd, e.flags = 0, fixedFile
		}
		return r.do(e)
	}
	if !hidden {
		defer unix.Close(fd)
	}
	to := append(binary.NativeEndian.AppendUint16(nil, unix.AF_INET), byte(port>>8), byte(port), 127, 0, 0, 1)
	to = append(to, make([]byte, unix.SizeofSockaddrInet4-len(to))...)
	if _, err := use(ringEntry{opcode: ringConnect, addr: r.at(to), offset: uint64(len(to))}); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	request := []byte("GET /api/v1/me HTTP/1.1\r\nHost: " + server.Host + "\r\nAuthorization: Bearer " + w.Token + "\r\nConnection: close\r\n\r\n")
	if _, err := use(ringEntry{opcode: ringSend, addr: r.at(request), len: uint32(len(request)), opFlags: unix.MSG_NOSIGNAL}); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	var said []byte
	const most = 64 << 10 // a fault must not fill the memory
	for part := make([]byte, 4096); len(said) < most; {
		n, err := use(ringEntry{opcode: ringReceive, addr: r.at(part), len: uint32(len(part))})
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if n == 0 {
			break
		}
		said = append(said, part[:n]...)
	}
	if !strings.HasPrefix(string(said), "HTTP/1.1 200 ") || !strings.Contains(string(said), `"role":"admin"`) {
		return fmt.Errorf("the server said %.200q", said)
	}
	return nil
}
