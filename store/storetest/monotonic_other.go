//go:build !linux

package storetest

import "time"

// monotonic reads the wall clock. Histories of several processes are checked only on systems
// where they share a clock that cannot be set.
func monotonic() int64 { return time.Now().UnixNano() }
