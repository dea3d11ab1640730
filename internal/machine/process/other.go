//go:build !linux

package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"lockkeeper"
)

// Self identifies this process as far as this system allows: enough to display, not enough
// to decide about liveness.
func Self() (lockkeeper.Process, error) { return Identify(os.Getpid()) }

// Identify names a process. It cannot distinguish the process from a later one with the same
// number.
func Identify(pid int) (lockkeeper.Process, error) {
	if pid <= 0 {
		return lockkeeper.Process{}, &lockkeeper.InputError{Field: "pid", Value: strconv.Itoa(pid), Reason: "not a process number"}
	}
	host, err := os.Hostname()
	if err != nil {
		return lockkeeper.Process{}, fmt.Errorf("identify this host: %w", err)
	}
	return lockkeeper.Process{Host: host, PID: pid}, nil
}

// A Host cannot decide about processes on this system; only leases do.
type Host struct{}

// NewHost never fails on this system.
func NewHost(string) (*Host, error) { return &Host{}, nil }

// Liveness returns ProcessUnknown.
func (*Host) Liveness(lockkeeper.Process) lockkeeper.Liveness { return lockkeeper.ProcessUnknown }

// Exited returns a channel that never closes.
func (*Host) Exited(context.Context, lockkeeper.Process) <-chan struct{} { return make(chan struct{}) }

// EndLeftovers refuses, because the remaining processes are not visible here.
func (*Host) EndLeftovers(_ context.Context, p lockkeeper.Process, grantID string) error {
	return &lockkeeper.RefusedError{Act: "ending the processes of grant " + grantID,
		Reason: fmt.Sprintf("the processes of pid %d on %s cannot be found on %s", p.PID, p.Host, runtime.GOOS),
		Next:   "wait until the lease expires"}
}

// EndWork refuses, for the same reason.
func (h *Host) EndWork(ctx context.Context, p lockkeeper.Process, grantID string) error {
	return h.EndLeftovers(ctx, p, grantID)
}

// Run runs a command and kills it when ctx ends. It does not track the command's
// descendants.
func Run(ctx context.Context, c Command) (int, error) {
	if err := c.check(); err != nil {
		return -1, err
	}
	if ctx.Err() != nil {
		return -1, context.Cause(ctx)
	}
	self, err := Self()
	if err != nil {
		return -1, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	c.prepare(cmd)
	cmd.WaitDelay = max(c.KillAfter, time.Second)
	if err := cmd.Start(); err != nil {
		return startFailure(c, err)
	}
	if c.Started != nil {
		if err := c.Started(self); err != nil {
			cancel(err)
		}
	}
	cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		c.tell(status)
	}
	return cmd.ProcessState.ExitCode(), context.Cause(ctx)
}

// Run calls the function Run.
func (*Host) Run(ctx context.Context, c Command) (int, error) { return Run(ctx, c) }

// Tracking returns TrackNone.
func Tracking() Track { return TrackNone }

// Terminal returns "", because the terminal is unknown here.
func Terminal() string { return "" }

// Holder returns the callsign of a caller without a name: the same for all commands of one
// parent process.
func Holder() (string, error) {
	self, err := Self()
	if err != nil {
		return "", err
	}
	return Callsign(fmt.Sprintf("%s parent %d", self.Host, os.Getppid())), nil
}

// Anchor returns the parent process.
func Anchor([]string) (lockkeeper.Process, error) { return Identify(os.Getppid()) }

// Above returns the parent process. Its ancestors are unknown here.
func Above() []Ancestor {
	p, err := Identify(os.Getppid())
	if err != nil {
		return nil
	}
	return []Ancestor{{Process: p}}
}

// CallingProgram returns the parent process. Its terminal is unknown here.
func CallingProgram() (*lockkeeper.Process, string, error) {
	p, err := Identify(os.Getppid())
	return &p, "", err
}

// Named returns nil on this system.
func Named(...string) ([]Running, error) { return nil, nil }
