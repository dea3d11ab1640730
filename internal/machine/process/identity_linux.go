package process

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"

	"lockkeeper"
	"lockkeeper/internal/machine/boot"
)

// Self identifies this process.
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
	// The caller's own namespace, because pid was looked up in it.
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
		// Only the boot distinguishes machines with this name. So another boot counts as
		// another host, and its processes never as dead.
		booted, err := boot.ID()
		if err != nil {
			return "", fmt.Errorf("identify this host: %w", err)
		}
		id = []byte(booted)
	}
	return name + fmt.Sprintf("/%.4x", sha256.Sum256(append([]byte("lockkeeper host "), id...))), nil
}
