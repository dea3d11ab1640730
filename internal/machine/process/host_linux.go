package process

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/boot"
)

// A Host decides whether processes are alive, and ends them, as far as this process can see.
type Host struct {
	self lockkeeper.Process
	dir  string // directory for proofs of liveness and death; empty: none
}

// NewHost returns a Host, or an error if processes cannot be identified, such as without /proc.
// dir is for proofs that a process in another PID namespace or boot is alive or dead. All
// processes that share a store on one machine must use the same dir. Without dir, only processes
// of the same boot and PID namespace are judged.
func NewHost(dir string) (*Host, error) {
	self, err := Self()
	if err != nil {
		return nil, err
	}
	h := &Host{self: self, dir: dir}
	if dir != "" {
		h.noteBoot()
	}
	return h, nil
}

// sees reports whether the number of p identifies the same process here.
func (h *Host) sees(p lockkeeper.Process) bool {
	return p.Boot == h.self.Boot && p.PIDNS == h.self.PIDNS
}

// Run does the same as the function Run of this package. While the command runs, a locked file in the directory of this host
// shows that it is alive (presenceDir), also to processes in other PID namespaces.
func (h *Host) Run(ctx context.Context, c Command) (int, error) {
	c.presence = h.dir
	return Run(ctx, c)
}

func (h *Host) Liveness(p lockkeeper.Process) lockkeeper.Liveness {
	if p.PID <= 0 || p.Start == 0 || p.Boot == "" {
		return lockkeeper.ProcessUnknown
	}
	if !h.sees(p) {
		l := h.shown(p)
		if l == lockkeeper.ProcessUnknown && h.restarted(p) {
			l = lockkeeper.ProcessDead
		}
		return l
	}
	s, err := readStat(p.PID)
	switch {
	case errors.Is(err, errGone):
		// A /proc mounted with hidepid hides processes of other users.
		if errors.Is(unix.Kill(p.PID, 0), unix.ESRCH) {
			return lockkeeper.ProcessDead
		}
		return lockkeeper.ProcessUnknown
	case err != nil:
		return lockkeeper.ProcessUnknown
	case s.start != p.Start || s.dead():
		return lockkeeper.ProcessDead
	}
	return lockkeeper.ProcessAlive
}

// Exited returns a channel that is closed when p is gone, at once if it is already gone. If p
// cannot be watched from here, the channel never closes. The end of ctx stops the watch and does
// not close the channel.
func (h *Host) Exited(ctx context.Context, p lockkeeper.Process) <-chan struct{} {
	gone := make(chan struct{})
	switch h.Liveness(p) {
	case lockkeeper.ProcessDead:
		close(gone)
		return gone
	case lockkeeper.ProcessUnknown:
		return gone
	}
	if !h.sees(p) {
		return gone
	}
	handle, err := openHandle(p.PID, p.Start)
	if errors.Is(err, errGone) {
		close(gone)
		return gone
	}
	if err != nil {
		return gone
	}
	go func() {
		defer handle.close()
		if handle.wait(ctx) == nil {
			close(gone)
		}
	}()
	return gone
}

func Self() (lockkeeper.Process, error) {
	seen, err := os.Readlink("/proc/self")
	if err != nil {
		return lockkeeper.Process{}, fmt.Errorf("identify this process: %w", err)
	}
	pid := os.Getpid()
	if seen != strconv.Itoa(pid) {
		return lockkeeper.Process{}, lockkeeper.WithNext(fmt.Errorf(
			"identify this process: /proc shows pid %s and the process has pid %d: /proc belongs to another PID namespace", seen, pid), "mount /proc again")
	}
	return Identify(pid)
}

// Identify identifies a running process of this PID namespace.
func Identify(pid int) (lockkeeper.Process, error) {
	bad := func(reason string) error {
		return &lockkeeper.InputError{Field: "pid", Value: strconv.Itoa(pid), Reason: reason,
			Next: "name a process that runs on this machine, in this PID namespace"}
	}
	if pid <= 0 {
		return lockkeeper.Process{}, bad("not a process number")
	}
	s, err := readStat(pid)
	switch {
	case errors.Is(err, errGone):
		return lockkeeper.Process{}, bad("no such process")
	case err != nil:
		return lockkeeper.Process{}, fmt.Errorf("identify process %d: %w", pid, err)
	case s.dead():
		return lockkeeper.Process{}, bad(fmt.Sprintf("%q has exited and waits for its parent %d", s.name, s.parent))
	}
	host, err := hostName()
	if err != nil {
		return lockkeeper.Process{}, err
	}
	id, err := boot.ID()
	if err != nil {
		return lockkeeper.Process{}, err
	}
	// The namespace is the caller's own, because pid was looked up in it.
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return lockkeeper.Process{}, fmt.Errorf("identify this PID namespace: %w", err)
	}
	return lockkeeper.Process{Host: host, Boot: id, PIDNS: ns, PID: pid, Start: s.start}, nil
}

// hostName returns the machine's name and a digest of its machine id, because two machines
// may both be called localhost.
func hostName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("identify this host: %w", err)
	}
	text, err := os.ReadFile("/etc/machine-id")
	id := bytes.TrimSpace(text)
	if err != nil || len(id) == 0 {
		// Only the boot distinguishes machines with this name. So another boot counts as another
		// host, and its processes never count as dead.
		booted, err := boot.ID()
		if err != nil {
			return "", fmt.Errorf("identify this host: %w", err)
		}
		id = []byte(booted)
	}
	return name + fmt.Sprintf("/%.4x", sha256.Sum256(append([]byte("lockkeeper host "), id...))), nil
}
