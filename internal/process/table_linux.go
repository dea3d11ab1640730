package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// table is the processes seen in one walk over /proc. It is not one instant:
// whoever acts on it checks identity again and walks again afterwards. But each
// process that lives when the walk ends is in it, or was being forked by one that
// is: a chain of short-lived processes does not slip through between the list of
// numbers and the look at each.
type table map[int]stat

// mostRounds bounds how often a walk looks for processes that were started
// meanwhile, on a machine that starts them faster than they can be looked at.
const mostRounds = 1000

func readTable() (table, error) {
	t, room := table{}, make([]byte, maxStat)
	last := -1 // highest number looked at; -1: none yet
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

// readAll reads all that /proc lists.
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

// newestPID is the number that was given last in this PID namespace.
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

// isThread reports whether a number belongs to a thread that is not the first of
// its process. /proc shows these to who asks for them by number.
func isThread(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, after, found := bytes.Cut(text, []byte("\nTgid:"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	return found && string(bytes.TrimSpace(line)) != strconv.Itoa(pid)
}

// ancestors is pid itself and every process above it.
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
