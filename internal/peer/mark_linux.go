package peer

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Mark marks this process and everything that it starts, for good.
func Mark() error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_LOCKS, &now); err != nil {
		return fmt.Errorf("read the mark of sandboxes: %w", err)
	}
	to := unix.Rlimit{Max: marked(now.Max)}
	if now.Max < Unmarked { // a sandbox in a sandbox
		if now.Max == 0 {
			return errors.New("mark a sandbox: too many sandboxes inside of each other; next: raise the hard limit on file locks (ulimit -x)")
		}
		to.Max = now.Max - 1
	}
	to.Cur = min(marked(now.Cur), to.Max)
	if err := unix.Setrlimit(unix.RLIMIT_LOCKS, &to); err != nil {
		return fmt.Errorf("mark a sandbox: %w", err)
	}
	return nil
}

// marked is a limit below Unmarked, with the number that another part of the program keeps
// in its lower bits.
func marked(limit uint64) uint64 { return min(limit, 2*Unmarked-1) &^ Unmarked }

// limitName begins the line of /proc/<pid>/limits that has the limit on file locks.
const limitName = "Max file locks"

// limitIn reads the hard limit from the text of /proc/<pid>/limits.
func limitIn(text []byte) (uint64, error) {
	for line := range bytes.Lines(text) {
		rest, ok := strings.CutPrefix(string(line), limitName)
		if !ok {
			continue
		}
		fields := strings.Fields(rest) // soft, hard, unit
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
