package lockkeeper

import "time"

// Instant is a point on a store's lease clock, in nanoseconds from an origin
// that only the store knows. Leases are compared on it and on nothing else: on
// one host it is the monotonic clock, so a jump of the wall clock or a laptop
// that slept frees nothing.
type Instant int64

// Add is the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Until is how long it takes from now to i.
func (i Instant) Until(now Instant) time.Duration { return time.Duration(i - now) }
