package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// household is this process's children while commands run. It makes the process
// the reaper of orphans below it, so that what a killed keeper kept does not escape
// to process 1, and tells adopted children from those that were started here.
//
// Starting and reaping exclude each other: a keeper that exits at once must be
// known as a keeper before anybody looks for zombies.
type household struct {
	mu   sync.Mutex
	runs int
	was  int32          // the attribute as the first run found it
	own  map[int]uint64 // children not adopted: keepers, and all that was here before; pid to start time
}

// home is the one household: the kernel keeps the attribute per process.
var home household

func (h *household) enter() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs == 0 {
		before, err := childrenOfSelf()
		if err != nil {
			return err
		}
		h.own = before
		if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&h.was)), 0, 0, 0); err != nil {
			return fmt.Errorf("ask who reaps orphans: %w", err)
		}
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("become the reaper of orphans: %w", err)
		}
	}
	h.runs++
	return nil
}

// childrenOfSelf returns the children of this process, by pid, with their start times.
func childrenOfSelf() (map[int]uint64, error) {
	list := map[int]uint64{}
	if look(unix.WEXITED|unix.WSTOPPED|unix.WCONTINUED) == none {
		return list, nil
	}
	t, err := readTable(nil)
	for pid, s := range t {
		if s.parent == os.Getpid() {
			list[pid] = s.start
		}
	}
	return list, err
}

// A kin says whether this process has children, and whether one has changed. The kernel
// answers that without a walk over all processes.
type kin uint8

const (
	none  kin = iota // there are none
	quiet            // none has changed in the way asked for
	some             // one has, at least
)

// look asks the kernel for children that have changed in some way, and leaves their
// exit statuses to the code that waits for them.
func look(changes int) kin {
	var info unix.Siginfo
	switch err := unix.Waitid(unix.P_ALL, 0, &info, changes|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil); {
	case errors.Is(err, unix.ECHILD):
		return none
	case err == nil && info.Signo == 0:
		return quiet
	}
	return some
}

func (h *household) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs--; h.runs == 0 {
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(h.was), 0, 0, 0)
		h.own = nil
	}
}

// start starts a keeper and returns its identity; its entry stays until forget.
func (h *household) start(cmd *exec.Cmd) (stat, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return stat{}, err
	}
	s, err := readStat(cmd.Process.Pid)
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return stat{}, err
	}
	h.own[s.pid] = s.start
	return s, nil
}

func (h *household) forget(pid int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.own, pid)
}

// strays are adopted children: ours by parent, in a foreign process group, and
// not started here.
func (h *household) strays(t table) (list []stat) {
	for _, s := range t {
		if s.parent == os.Getpid() && s.group != unix.Getpgrp() && h.own[s.pid] != s.start {
			list = append(list, s)
		}
	}
	return list
}

// orphans lists the adopted children. A living keeper adopts what its command
// leaves, so these were the children of keepers that were killed.
func (h *household) orphans(t table) []stat {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.strays(t)
}

// reap takes the exit status of adopted children, which nobody else waits for.
func (h *household) reap() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if look(unix.WEXITED) != some {
		return
	}
	t, err := readTable(nil)
	if err != nil {
		return // they stay zombies until the next look
	}
	for _, s := range h.strays(t) {
		if s.dead() {
			unix.Wait4(s.pid, nil, unix.WNOHANG, nil)
		}
	}
}
