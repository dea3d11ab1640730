package boot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ID returns the id of this run of the kernel, as this process sees it.
func ID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Tolerance is how far two computed start times of one run may differ: the
// clocks are read one after the other, and the wall clock is adjusted.
const Tolerance = 2 * time.Second

// Stamp returns the id of this run of the kernel and, if it is known, when the run
// started, as one word to store.
func Stamp() (string, error) {
	id, err := ID()
	if err != nil {
		return "", err
	}
	at, err := Started()
	if err != nil {
		return id, nil
	}
	return id + "@" + strconv.FormatInt(at.Unix(), 10), nil
}

// Same reports whether two stamps made on one machine are of the same run: the ids
// are equal, or both started at the same time.
func Same(a, b string) bool {
	idA, atA, knownA := strings.Cut(a, "@")
	idB, atB, knownB := strings.Cut(b, "@")
	if idA == idB {
		return true
	}
	startA, errA := strconv.ParseInt(atA, 10, 64)
	startB, errB := strconv.ParseInt(atB, 10, 64)
	apart := time.Duration(startA-startB) * time.Second
	return knownA && knownB && errA == nil && errB == nil && apart.Abs() <= Tolerance
}

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
		return nil // the kernel has no time namespaces
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
