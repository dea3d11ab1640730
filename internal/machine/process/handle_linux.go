package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A handle refers to one process, so that neither waiting nor signaling can reach a later
// process with the same number. It supports one wait.
type handle struct{ file *os.File }

// openHandle opens the process with this number and start time, or returns errGone if it is dead.
// It checks the identity after opening: if that process is still alive then, the handle refers
// to it.
func openHandle(pid int, start uint64) (*handle, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, errGone
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	h := &handle{file: os.NewFile(uintptr(fd), fmt.Sprintf("pidfd:%d", pid))}
	s, err := readStat(pid)
	if err == nil && (s.start != start || s.dead()) {
		err = errGone
	}
	if err == nil {
		// This fails if the runtime's poller did not accept the descriptor. Waiting would then
		// block a thread that cannot be woken.
		err = h.file.SetReadDeadline(time.Time{})
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *handle) close() { h.file.Close() }

// signal sends a signal, or returns errGone if the process is gone.
func (h *handle) signal(sig unix.Signal) error {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	if err := conn.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), sig, nil, 0) }); err != nil {
		return err
	}
	if errors.Is(sent, unix.ESRCH) {
		return errGone
	}
	return sent
}

// wait returns nil when the process has exited, reaped or not. If the context ends first, it
// returns the cause.
func (h *handle) wait(ctx context.Context) error {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { h.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	exited := false
	err = conn.Read(func(fd uintptr) bool {
		exited = readable(int(fd))
		return exited
	})
	switch {
	case exited:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return err
	}
}

func readable(fd int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}
