package process

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A brand is a number that all descendants of a keeper carry as their limit for
// resident memory (RLIMIT_RSS). The kernel has not enforced this limit since version
// 2.4.30. Children and executed programs inherit it, /proc/<pid>/limits shows it, and
// only root can raise the hard limit. So a process keeps its brand even if it changes its
// session, parent, environment and title. The number is larger than any memory, so
// programs that size their buffers by the limit see no difference.
//
// The mark of sandboxes (package peer) is a limit of another kind, so that a process
// can carry both.
type brand uint64

// brandOf returns the brand of one keeper: no other process of this boot and PID
// namespace has its number and start time. A later keeper has a lower brand. So a keeper
// that runs below another one can set its own as the soft limit and leave the hard one.
func brandOf(pid int, start uint64) brand {
	const ticks = 1<<40 - 1
	return 1<<62 | brand(ticks-start&ticks)<<22 | brand(pid&(1<<22-1))
}

// put brands this process. Below another keeper the hard limit stays as it is, and only
// the soft limit becomes the brand. If a lower hard limit is set already, the process
// stays unbranded, and its descendants are found by other means.
func (b brand) put() {
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_RSS, &now) != nil || now.Max < uint64(b) {
		return
	}
	limit := unix.Rlimit{Cur: uint64(b), Max: uint64(b)}
	if now.Max != unix.RLIM_INFINITY {
		limit.Max = now.Max
	}
	unix.Setrlimit(unix.RLIMIT_RSS, &limit)
}

// on reports whether a process carries the brand.
func (b brand) on(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if limits, ok := strings.CutPrefix(line, "Max resident set"); ok {
			for _, limit := range strings.Fields(limits) {
				if limit == strconv.FormatUint(uint64(b), 10) {
					return true
				}
			}
			return false
		}
	}
	return false
}
