//go:build !linux

package storetest

import "time"

// monotonic reads the wall clock: histories of several processes are only
// checked where they share a clock that cannot be set.
func monotonic() int64 { return time.Now().UnixNano() }
