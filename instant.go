package lockkeeper

import "time"

// An Instant is a time on a store's lease clock, in nanoseconds from an origin that only the
// store knows. Leases use this clock only. On one host it is the monotonic clock, so a change
// of the wall clock or a suspended laptop frees nothing.
type Instant int64

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Until returns the time from now to i.
func (i Instant) Until(now Instant) time.Duration { return time.Duration(i - now) }
