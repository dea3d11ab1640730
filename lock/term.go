package lock

import "time"

// The lease of a grant that covers work is divided, counted from the start of the last successful renewal:
//
//	trusted                     the keeper renews
//	KillAfter                   the work was told to stop, and may end by itself
//	the rest                    the work is killed
//
// So the work has ended before another holder can get the locks, also if the store is unreachable and the work
// ignores the signal.

// ShortestKept is the shortest lease of a grant that covers work. A shorter one leaves too little time to kill the
// work on a busy machine.
const ShortestKept = 3 * time.Second

// KillAfter returns how long work may take to end after its grant with this lease was lost. A lease of 0 never
// ends.
func KillAfter(lease time.Duration) time.Duration {
	if lease <= 0 {
		return 5 * time.Second
	}
	return min(5*time.Second, lease/4)
}

// trust returns how long a keeper that gets no answer trusts its lease.
func trust(lease time.Duration) time.Duration {
	return lease - KillAfter(lease) - min(10*time.Second, lease/6)
}
