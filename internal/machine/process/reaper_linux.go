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

// An orphanReaper makes this process the reaper of orphans below it while commands run. So the
// children of a killed keeper do not escape to process 1. It distinguishes adopted children from
// those that this process started. Starting and reaping exclude each other: a keeper that exits at
// once must be registered before reap looks for zombies.
type orphanReaper struct {
	mu   sync.Mutex
	runs int
	was  int32          // value of the attribute before the first run changed it
	own  map[int]uint64 // children that were not adopted, and their start times: keepers, and earlier children
}

// reaper is the only orphanReaper, because the kernel has one attribute per process.
var reaper orphanReaper

func (r *orphanReaper) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == 0 {
		before, err := childrenOfSelf()
		if err != nil {
			return err
		}
		r.own = before
		if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&r.was)), 0, 0, 0); err != nil {
			return fmt.Errorf("ask who reaps orphans: %w", err)
		}
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("become the reaper of orphans: %w", err)
		}
	}
	r.runs++
	return nil
}

// childrenOfSelf returns the children of this process, by pid, with their start times.
func childrenOfSelf() (map[int]uint64, error) {
	list := map[int]uint64{}
	if changedChildren(unix.WEXITED|unix.WSTOPPED|unix.WCONTINUED) == none {
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

// A childState says whether this process has children, and whether one has changed. The kernel
// reports it without a walk over all processes.
type childState uint8

const (
	none  childState = iota // the process has no children
	quiet                   // no child has changed in the requested ways
	some                    // at least one child has changed
)

// changedChildren asks the kernel for children that have changed in the given ways. It leaves
// their exit statuses to the code that waits for them.
func changedChildren(changes int) childState {
	var info unix.Siginfo
	switch err := unix.Waitid(unix.P_ALL, 0, &info, changes|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil); {
	case errors.Is(err, unix.ECHILD):
		return none
	case err == nil && info.Signo == 0:
		return quiet
	}
	return some
}

func (r *orphanReaper) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs--; r.runs == 0 {
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(r.was), 0, 0, 0)
		r.own = nil
	}
}

// start starts a keeper and returns its identity; its entry stays until forget.
func (r *orphanReaper) start(cmd *exec.Cmd) (stat, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return stat{}, err
	}
	s, err := readStat(cmd.Process.Pid)
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return stat{}, err
	}
	r.own[s.pid] = s.start
	return s, nil
}

func (r *orphanReaper) forget(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.own, pid)
}

// strays lists the adopted children: children in another process group that were not
// started here.
func (r *orphanReaper) strays(t table) (list []stat) {
	for _, s := range t {
		if s.parent == os.Getpid() && s.group != unix.Getpgrp() && r.own[s.pid] != s.start {
			list = append(list, s)
		}
	}
	return list
}

// orphans returns the adopted children. A living keeper adopts the orphans of its command, so
// these were children of killed keepers.
func (r *orphanReaper) orphans(t table) map[int]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	set := map[int]bool{}
	for _, s := range r.strays(t) {
		set[s.pid] = true
	}
	return set
}

// reap collects the exit status of adopted children. No other code waits for them.
func (r *orphanReaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if changedChildren(unix.WEXITED) != some {
		return
	}
	t, err := readChildren()
	if err != nil {
		return // the children stay zombies until the next call
	}
	for _, s := range r.strays(t) {
		if s.dead() {
			unix.Wait4(s.pid, nil, unix.WNOHANG, nil)
		}
	}
}
