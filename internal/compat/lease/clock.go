package lease

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/boot"
)

// A Reading is one reading of the host's clocks.
type Reading struct {
	Wall   time.Time     `json:"wall"`
	Ticks  time.Duration `json:"ticks"`  // of a clock that cannot be set
	Origin string        `json:"origin"` // where Ticks counts from; empty if there is no such clock
}

// wallSince returns the wall clock time of r as if the wall clock had not been set after
// seen. ok is false if the two readings cannot be compared.
func (r Reading) wallSince(seen Reading) (wall time.Time, ok bool) {
	if r.Origin == "" || r.Origin != seen.Origin || r.Ticks < seen.Ticks {
		return time.Time{}, false
	}
	return seen.Wall.Add(r.Ticks - seen.Ticks), true
}

// systemClock returns a reader of this host's clocks. The origin names the boot and the
// time namespace, because each namespace has its own monotonic clock.
func systemClock() func() Reading {
	id, bootErr := boot.ID()
	space, spaceErr := os.Readlink("/proc/self/ns/time")
	origin := ""
	if bootErr == nil && (spaceErr == nil || os.IsNotExist(spaceErr)) { // a kernel without time namespaces has no link
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
