package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// A table holds the processes seen in one walk over /proc, by number. A walk takes
// time, so a caller that acts on an entry checks its identity again, and walks again
// afterwards. Every process that lives when the walk ends is in the table, or was being
// forked by one that is. So a chain of short-lived processes cannot escape a walk.
type table map[int]stat

// mostRounds bounds how often a walk looks for processes that were started
// meanwhile, if the machine starts them faster than the walk reads them.
const mostRounds = 1000

func readTable() (table, error) {
	t, room := table{}, make([]byte, maxStat)
	last := -1 // highest number read; -1: none yet
	for range mostRounds {
		newest, err := newestPID()
		if err != nil {
			return nil, err
		}
		switch {
		case newest == last:
			return t, nil
		case last < 0 || newest < last: // numbers begin at the bottom again
			if err := t.readAll(room); err != nil {
				return nil, err
			}
		default:
			for pid := last + 1; pid <= newest; pid++ {
				if isThread(pid) {
					continue
				}
				if err := t.read(pid, room); err != nil {
					return nil, err
				}
			}
		}
		last = newest
	}
	return t, nil
}

// readAll reads all processes that /proc lists.
func (t table) readAll(room []byte) error {
	d, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if err := t.read(pid, room); err != nil {
			return err
		}
	}
	return nil
}

func (t table) read(pid int, room []byte) error {
	s, err := readStatIn(pid, room)
	if errors.Is(err, errGone) {
		return nil
	}
	if err == nil {
		t[pid] = s
	}
	return err
}

// newestPID returns the number of the process started last in this PID namespace.
func newestPID() (int, error) {
	room := make([]byte, 128)
	n, err := readOnce("/proc/loadavg", room)
	if err != nil {
		return 0, err
	}
	f := bytes.Fields(room[:n])
	if len(f) == 0 {
		return 0, fs.ErrInvalid
	}
	return strconv.Atoi(string(f[len(f)-1]))
}

// isThread reports whether a number belongs to a thread that is not the first of its
// process. /proc does not list such numbers, but opens them.
func isThread(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, after, found := bytes.Cut(text, []byte("\nTgid:"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	return found && string(bytes.TrimSpace(line)) != strconv.Itoa(pid)
}

// ancestors returns pid itself and every process above it.
func (t table) ancestors(pid int) map[int]bool {
	set := map[int]bool{}
	for pid > 0 && !set[pid] {
		set[pid] = true
		pid = t[pid].parent
	}
	return set
}

// below adds to set every descendant of its members.
func (t table) below(set map[int]bool) {
	for grown := true; grown; {
		grown = false
		for pid, s := range t {
			if !set[pid] && set[s.parent] {
				set[pid], grown = true, true
			}
		}
	}
}
