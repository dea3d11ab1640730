package process

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// Host judges and ends processes from where this process stands.
type Host struct{ self lockkeeper.Process }

// NewHost fails where processes cannot be told apart, as without /proc.
func NewHost() (*Host, error) {
	self, err := Self()
	if err != nil {
		return nil, err
	}
	return &Host{self: self}, nil
}

// Life says whether p lives.
func (h *Host) Life(p lockkeeper.Process) lockkeeper.Life {
	switch {
	case p.PID <= 0 || p.Start == 0 || p.Boot == "":
		return lockkeeper.LifeUnknown
	case p.Boot != h.self.Boot:
		if p.Host == h.self.Host {
			return lockkeeper.LifeDead // the machine was started again
		}
		return lockkeeper.LifeUnknown
	case p.PIDNS != h.self.PIDNS:
		return lockkeeper.LifeUnknown
	}
	s, err := readStat(p.PID)
	switch {
	case errors.Is(err, errGone):
		// A /proc mounted with hidepid hides what other users run.
		if errors.Is(unix.Kill(p.PID, 0), unix.ESRCH) {
			return lockkeeper.LifeDead
		}
		return lockkeeper.LifeUnknown
	case err != nil:
		return lockkeeper.LifeUnknown
	case s.start != p.Start || s.dead():
		return lockkeeper.LifeDead
	}
	return lockkeeper.LifeAlive
}

// Exited returns a channel that is closed when p is gone, at once if it already
// is. If p cannot be watched from here the channel never closes; nor does it
// close because ctx ends, which only ends the watching.
func (h *Host) Exited(ctx context.Context, p lockkeeper.Process) <-chan struct{} {
	gone := make(chan struct{})
	switch h.Life(p) {
	case lockkeeper.LifeDead:
		close(gone)
		return gone
	case lockkeeper.LifeUnknown:
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
