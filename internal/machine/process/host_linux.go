package process

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// Host judges and ends processes from where this process stands.
type Host struct {
	self lockkeeper.Process
	dir  string // where it keeps what proves life and death; empty: nowhere
}

// NewHost fails where processes cannot be told apart, as without /proc. In dir it
// keeps what proves that a process which it cannot see lives or died; all who share
// a store on one machine give the same. Without dir, only processes of the same boot
// and PID namespace are judged.
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

// sees reports whether the number of p means the same process here.
func (h *Host) sees(p lockkeeper.Process) bool {
	return p.Boot == h.self.Boot && p.PIDNS == h.self.PIDNS
}

// Run is the function Run, for a command whose supervisor is also judged by those
// who share the directory of this host and cannot see its processes.
func (h *Host) Run(ctx context.Context, c Command) (int, error) {
	c.presence = h.dir
	return Run(ctx, c)
}

// Life says whether p lives.
func (h *Host) Liveness(p lockkeeper.Process) lockkeeper.Liveness {
	if p.PID <= 0 || p.Start == 0 || p.Boot == "" {
		return lockkeeper.ProcessUnknown
	}
	if !h.sees(p) {
		life := h.shown(p)
		if life == lockkeeper.ProcessUnknown && h.restarted(p) {
			life = lockkeeper.ProcessDead
		}
		return life
	}
	s, err := readStat(p.PID)
	switch {
	case errors.Is(err, errGone):
		// A /proc mounted with hidepid hides what other users run.
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

// Exited returns a channel that is closed when p is gone, at once if it already
// is. If p cannot be watched from here the channel never closes; nor does it
// close because ctx ends, which only ends the watching.
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
