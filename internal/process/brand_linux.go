package process

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A brand is a number that all descendants of a keeper carry as their limit for
// resident memory (RLIMIT_RSS). The kernel enforces no such limit since version
// 2.4.30, hands it on with every fork and exec, shows it in /proc/<pid>/limits, and
// lets nobody but root raise the hard one. So it stays on a process that changed its
// session, its parent, its environment and its title. The number is larger than any
// memory, so programs that size their buffers by the limit see no difference.
//
// The mark of sandboxes (package peer) is a limit of another kind, so that a process
// can carry both.
type brand uint64

// brandOf is the brand of one keeper: no other process of this boot and PID
// namespace has its number and start time. A later keeper has a lower brand, so
// that one which runs below another can put its brand beside the other's.
func brandOf(pid int, start uint64) brand {
	const ticks = 1<<40 - 1
	return 1<<62 | brand(ticks-start&ticks)<<22 | brand(pid&(1<<22-1))
}

// put brands this process. Below another keeper the hard limit stays as it is,
// and only the soft limit becomes the brand. Where a lower limit is set already,
// this process stays unbranded: the other ways to find its descendants remain.
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
