package boot

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrShifted reports that this process is in a time namespace in which the kernel's clocks differ
// from those outside.
var ErrShifted = errors.New("this process is in a time namespace with other clocks")

// clockSet is a year before which a wall clock is not set yet. A machine without a
// battery starts before it.
const clockSet = 2020

// Started returns when this run of the kernel started, by the current wall clock.
func Started() (time.Time, error) {
	if err := Shifted(); err != nil {
		return time.Time{}, err
	}
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}, err
	}
	at := time.Now().Add(-time.Duration(up.Nano())).Round(0)
	if at.Year() < clockSet {
		return time.Time{}, errors.New("the wall clock is not set")
	}
	return at, nil
}

// Shifted returns ErrShifted if this process is in a time namespace with other clocks.
func Shifted() error {
	text, err := os.ReadFile("/proc/self/timens_offsets")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a kernel without time namespaces
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 3 && (f[1] != "0" || f[2] != "0") {
			return ErrShifted
		}
	}
	return nil
}
