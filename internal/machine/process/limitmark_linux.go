package process

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A limitMark is a number that all descendants of a keeper carry as their limit for
// resident memory (RLIMIT_RSS). The kernel has not enforced this limit since version
// 2.4.30. Children and executed programs inherit it, /proc/<pid>/limits shows it, and
// only root can raise the hard limit. So a process keeps its mark even if it changes its
// session, parent, environment and title. The number is larger than any memory, so
// programs that size their buffers by the limit see no difference.
//
// The mark of sandboxes (package peer) is another limit, so a process can carry both.
//
// A process can lower its limit and lose the mark. It still has a hard limit, which
// processes that no keeper started do not have (isLowered).
type limitMark uint64

// leastLimitMark is less than any mark, and more than the size of any memory.
const leastLimitMark = 1 << 62

// limitMarkOf returns the mark of one keeper: no other process of this boot and PID
// namespace has its number and start time. A later keeper has a lower mark. So a keeper
// that runs below another one can set its own as the soft limit and leave the hard one.
func limitMarkOf(pid int, start uint64) limitMark {
	const ticks = 1<<40 - 1
	return leastLimitMark | limitMark(ticks-start&ticks)<<22 | limitMark(pid&(1<<22-1))
}

// put marks this process. Below another keeper the hard limit stays as it is, and only
// the soft limit becomes the mark. If a lower hard limit is set already, the process
// stays unmarked, and its descendants are found by other means.
func (m limitMark) put() {
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_RSS, &now) != nil || now.Max < uint64(m) {
		return
	}
	limit := unix.Rlimit{Cur: uint64(m), Max: uint64(m)}
	if now.Max != unix.RLIM_INFINITY {
		limit.Max = now.Max
	}
	unix.Setrlimit(unix.RLIMIT_RSS, &limit)
}

// on reports whether a process carries the mark.
func (m limitMark) on(pid int) bool {
	soft, hard, ok := residentLimits(pid)
	return ok && (soft == uint64(m) || hard == uint64(m))
}

// isLowered reports whether a process with these limits was marked and has lowered one of
// them since. Only root can raise a hard limit, so a process without one was never marked.
// base is the hard limit of this user's processes without a mark.
func isLowered(soft, hard, base uint64) bool {
	return hard != unix.RLIM_INFINITY && min(soft, hard) < min(base, leastLimitMark)
}

// residentLimits reads the limits of a process for resident memory.
func residentLimits(pid int) (soft, hard uint64, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(text)) {
		limits, is := strings.CutPrefix(line, "Max resident set")
		if !is {
			continue
		}
		f := strings.Fields(limits)
		if len(f) < 3 {
			return 0, 0, false
		}
		number := func(text string) uint64 {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil { // the limit is "unlimited"
				return unix.RLIM_INFINITY
			}
			return n
		}
		return number(f[len(f)-3]), number(f[len(f)-2]), true
	}
	return 0, 0, false
}

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
