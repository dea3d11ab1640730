package process

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// refuseLowered fails if processes run that may belong to the work and have lowered the limit
// that carried their mark. It does not kill them, because a person may have lowered the limit of
// an unrelated process. The keeper must be gone.
func (w *work) refuseLowered() error {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RSS, &own); err != nil {
		return fmt.Errorf("read the limit for resident memory: %w", err)
	}
	t, err := readTable(nil)
	if err != nil {
		return fmt.Errorf("look for processes of grant %s: %w", w.grantID, err)
	}
	var left []Leftover
	for pid, s := range t {
		soft, hard, ok := residentLimits(pid)
		if ok && isLowered(soft, hard, own.Max) && !s.dead() && isOwn(pid) && w.mayHaveStarted(t, s) {
			left = append(left, Leftover{pid, s.name, "it has lowered its limit for resident memory (ulimit -m), and may belong to this grant"})
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.SortFunc(left, func(a, b Leftover) int { return a.PID - b.PID })
	return &LeftoversError{GrantID: w.grantID, Left: left}
}

// mayHaveStarted reports whether a process may be a descendant of the keeper, which is gone. If
// so, it is younger, and every process between it and the reaper that adopted it, which is older,
// has a limit too. It is not below a keeper that started later and lives. Times are clock ticks,
// so one that started in the same tick may be older or younger.
func (w *work) mayHaveStarted(t table, s stat) bool {
	if s.start < w.Keeper {
		return false
	}
	for seen := map[int]bool{}; s.start >= w.Keeper && !seen[s.pid]; s = t[s.parent] {
		seen[s.pid] = true
		_, hard, ok := residentLimits(s.pid)
		if ok && hard == unix.RLIM_INFINITY && s.start > w.Keeper || limitMarkOf(s.pid, s.start).on(s.pid) {
			return false
		}
	}
	return true
}

// isOwn reports whether a process belongs to the user of this one. For root, it is always true.
func isOwn(pid int) bool {
	uid := os.Getuid()
	return uid == 0 || slices.Contains(statusOf(pid, "Uid"), strconv.Itoa(uid))
}
