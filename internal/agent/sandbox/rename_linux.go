package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A renamer renames directories in overlays for the processes of a command. The kernel refuses that
// with EXDEV if the directory comes from a lower directory. All other renames are left to the
// kernel.
//
// It runs on the thread from which the command was started, with the command's restrictions. So it
// can do nothing that the command could not. For a process that has restricted itself further, it
// does nothing.
type renamer struct {
	from   *os.File
	rights string      // those of the command
	queue  []notice    // renames of directories that wait
	ended  atomic.Bool // the command ended

	mu sync.Mutex // held while a call is carried out
}

// newRenamer returns a renamer for what the calling thread starts, or nil if the kernel cannot
// report calls.
func newRenamer() (*renamer, error) {
	from := reportRenames()
	if from == nil {
		return nil, nil
	}
	rights, err := rightsOf(unix.Gettid())
	if err != nil {
		return nil, fmt.Errorf("read the own rights: %w", err)
	}
	return &renamer{from: from, rights: rights}, nil
}

// serve answers calls until the program ends.
func (r *renamer) serve() error {
	for {
		if len(r.queue) == 0 {
			if err := r.accept(); err != nil {
				return err
			}
			continue
		}
		n := r.queue[0]
		r.queue = r.queue[1:]
		r.mu.Lock()
		if !r.ended.Load() {
			r.rename(n)
		}
		r.mu.Unlock()
	}
}

// stop lets a rename that is under way end. The renamer does nothing afterwards. It ends what the
// command left running, which would see its renames fail before the kernel ends it.
func (r *renamer) stop() {
	r.ended.Store(true)
	r.mu.Lock()
	unix.Kill(-1, unix.SIGKILL) // inner checked that this is the first process of its namespace
}

// accept receives a call. It leaves it to the kernel, or puts it into the queue if it renames a
// directory.
func (r *renamer) accept() error {
	n, err := receive(r.from)
	if err != nil {
		return err
	}
	if c, ok := n.read(); ok && (c.old.isDir(n.pid) || c.flags&unix.RENAME_EXCHANGE != 0 && c.new.isDir(n.pid)) {
		r.queue = append(r.queue, n)
	} else {
		reply(r.from, answer{id: n.id, flags: byKernel})
	}
	return nil
}

// yield answers what needs no work, so that other processes do not wait for a long rename. It
// fails if the command has ended.
func (r *renamer) yield() error {
	for waiting(r.from) {
		if err := r.accept(); err != nil {
			return err
		}
	}
	if r.ended.Load() {
		return unix.EINTR
	}
	return nil
}

// rename carries out a call.
func (r *renamer) rename(n notice) {
	c, _ := n.read() // it could be read before; an empty path is refused
	from, to, ok := r.resolve(n, c)
	defer from.close()
	defer to.close()
	if !ok {
		reply(r.from, answer{id: n.id, flags: byKernel})
		return
	}
	err := from.rename(to, c.flags)
	if errors.Is(err, unix.EXDEV) && sameMount(from.dir, to.dir) {
		from.name, to.name = strings.TrimRight(from.name, "/"), strings.TrimRight(to.name, "/")
		err = r.move(from, to, c.flags)
	}
	if r.ended.Load() {
		return // the process ends with this one
	}
	a := answer{id: n.id}
	var errno unix.Errno
	switch {
	case errors.As(err, &errno):
		a.errno = -int32(errno)
	case err != nil:
		a.errno = -int32(unix.EIO)
	}
	reply(r.from, a)
}

// resolve opens the directories of a call. The result is false if the kernel must carry it out.
func (r *renamer) resolve(n notice, c call) (from, to entry, ok bool) {
	if c.flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0 {
		return from, to, false
	}
	if rights, err := rightsOf(int(n.pid)); err != nil || rights != r.rights {
		return from, to, false
	}
	from, err := c.old.open(n.pid)
	if err != nil {
		return from, to, false
	}
	to, err = c.new.open(n.pid)
	return from, to, err == nil && onOverlay(from.dir) && n.valid(r.from)
}

// rightsOf describes the rights of a thread: its users, capabilities and filters, and what it sees.
func rightsOf(pid int) (string, error) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	text, err := os.ReadFile(proc + "status")
	if err != nil {
		return "", err
	}
	var rights strings.Builder
	for line := range strings.Lines(string(text)) {
		switch key, _, _ := strings.Cut(line, ":"); key {
		case "Uid", "Gid", "Groups", "CapEff", "Seccomp_filters":
			rights.WriteString(line)
		}
	}
	user, err := os.Readlink(proc + "ns/user")
	if err != nil {
		return "", err
	}
	var root unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, proc+"root", 0, unix.STATX_INO|unix.STATX_MNT_ID, &root); err != nil {
		return "", err
	}
	return fmt.Sprint(rights.String(), user, " ", root.Mnt_id, " ", root.Ino), nil
}

// A call is what a process wants to rename.
type call struct {
	old, new place
	flags    uint32
}

// A place is a path as a process gives it.
type place struct {
	dir  int32 // a descriptor of the process
	path string
}

// read reads the arguments of a call.
func (n notice) read() (c call, ok bool) {
	old, target := n.args[1], n.args[3]
	c.old.dir, c.new.dir = int32(n.args[0]), int32(n.args[2])
	switch {
	case n.call == unix.SYS_RENAMEAT2:
		c.flags = uint32(n.args[4])
	case n.call != unix.SYS_RENAMEAT: // rename has only paths
		c.old.dir, c.new.dir, old, target = unix.AT_FDCWD, unix.AT_FDCWD, n.args[0], n.args[1]
	}
	var errs [2]error
	c.old.path, errs[0] = n.text(old)
	c.new.path, errs[1] = n.text(target)
	return c, errors.Join(errs[:]...) == nil && c.old.path != "" && c.new.path != ""
}

// base returns the path of the directory to which the path is relative.
func (p place) base(pid uint32) string {
	switch {
	case path.IsAbs(p.path):
		return "/"
	case p.dir == unix.AT_FDCWD:
		return fmt.Sprintf("/proc/%d/cwd/", pid)
	}
	return fmt.Sprintf("/proc/%d/fd/%d/", pid, p.dir)
}

func (p place) isDir(pid uint32) bool {
	var info unix.Stat_t
	return unix.Lstat(p.base(pid)+p.path, &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFDIR
}

// open opens the directory that has the entry. It follows no link of /proc in the path, which would
// mean another file for the process than here.
func (p place) open(pid uint32) (entry, error) {
	base, err := unix.Open(p.base(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return entry{}, err
	}
	defer unix.Close(base)
	trimmed := strings.TrimRight(p.path, "/")
	dir, name := path.Split(trimmed)
	if name == "" || name == "." || name == ".." {
		return entry{}, unix.EBUSY
	}
	fd, err := unix.Openat2(base, "./"+dir, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	return entry{os.NewFile(uintptr(fd), dir), name + p.path[len(trimmed):]}, err
}

func onOverlay(dir *os.File) bool {
	var info unix.Statfs_t
	return unix.Fstatfs(int(dir.Fd()), &info) == nil && info.Type == unix.OVERLAYFS_SUPER_MAGIC
}

func sameMount(a, b *os.File) bool {
	var of [2]unix.Statx_t
	for i, dir := range []*os.File{a, b} {
		if err := unix.Statx(int(dir.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &of[i]); err != nil {
			return false
		}
	}
	return of[0].Mnt_id == of[1].Mnt_id
}

// rename renames an entry by the kernel.
func (e entry) rename(to entry, flags uint32) error {
	old, err := unix.BytePtrFromString(e.name)
	if err != nil {
		return err
	}
	target, err := unix.BytePtrFromString(to.name)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_RENAMEAT2, e.dir.Fd(), uintptr(unsafe.Pointer(old)), to.dir.Fd(), uintptr(unsafe.Pointer(target)), uintptr(uint64(flags)|ownCall<<32), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
