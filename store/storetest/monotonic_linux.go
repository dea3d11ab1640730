package storetest

import "golang.org/x/sys/unix"

// monotonic reads a clock that all processes of the host share and that cannot be set.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // the clock exists on every Linux
	}
	return now.Nano()
}
