package boot

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
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
