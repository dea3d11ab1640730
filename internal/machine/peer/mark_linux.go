package peer

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"lockkeeper"

	"golang.org/x/sys/unix"
)

// firstMark is the limit of a process in a sandbox. In a nested sandbox the limit is one less.
const firstMark = 1 << 20

// Mark permanently marks this process and everything that it starts.
func Mark() error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_LOCKS, &now); err != nil {
		return fmt.Errorf("read the mark of sandboxes: %w", err)
	}
	if now.Max == 0 {
		return lockkeeper.WithNext(errors.New("mark a sandbox: too many nested sandboxes"), "raise the hard limit on file locks (ulimit -x)")
	}
	to := min(now.Max-1, firstMark)
	if err := unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: to, Max: to}); err != nil {
		return fmt.Errorf("mark a sandbox: %w", err)
	}
	return nil
}

// limitName begins the line of /proc/<pid>/limits that has the limit on file locks.
const limitName = "Max file locks"

// limitIn reads the hard limit from the text of /proc/<pid>/limits.
func limitIn(text []byte) (uint64, error) {
	for line := range bytes.Lines(text) {
		rest, ok := strings.CutPrefix(string(line), limitName)
		if !ok {
			continue
		}
		fields := strings.Fields(rest) // the fields are soft limit, hard limit, unit
		if len(fields) < 2 {
			break
		}
		if fields[1] == "unlimited" {
			return math.MaxUint64, nil
		}
		return strconv.ParseUint(fields[1], 10, 64)
	}
	return 0, errors.New("the limits of a process do not name file locks")
}
