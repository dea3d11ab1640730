package lease

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/boot"
)

// Reading is one look at the clocks.
type Reading struct {
	Wall   time.Time     `json:"wall"`
	Ticks  time.Duration `json:"ticks"`  // of a clock that nobody sets
	Origin string        `json:"origin"` // where that clock counts from; empty: there is none
}

// since is what the wall clock would say at r had nobody set it after seen; not ok
// when the two cannot be compared.
func (r Reading) since(seen Reading) (wall time.Time, ok bool) {
	if r.Origin == "" || r.Origin != seen.Origin || r.Ticks < seen.Ticks {
		return time.Time{}, false
	}
	return seen.Wall.Add(r.Ticks - seen.Ticks), true
}

// systemClock reads the clocks of this host. The origin is the boot and the time
// namespace: in another one the same clock shows something else.
func systemClock() func() Reading {
	id, bootErr := boot.ID()
	space, spaceErr := os.Readlink("/proc/self/ns/time")
	origin := ""
	if bootErr == nil && (spaceErr == nil || os.IsNotExist(spaceErr)) { // a kernel without namespaces of time has no link
		origin = id + " " + space
	}
	return func() Reading {
		r := Reading{Wall: time.Now().Round(0), Origin: origin}
		var ts unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
			r.Origin = ""
		}
		r.Ticks = time.Duration(ts.Nano())
		return r
	}
}
