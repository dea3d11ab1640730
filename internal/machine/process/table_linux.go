package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A table holds the processes seen in one walk over /proc, by number. A walk takes
// time, so a caller that acts on an entry checks its identity again, and walks again
// afterwards. Every process that lives when the walk ends is in the table, or was being
// forked by one that is. So a chain of short-lived processes cannot escape a walk.
type table map[int]stat

// mostRounds bounds how often a walk looks for processes that were started
// meanwhile, if the machine starts them faster than the walk reads them.
const mostRounds = 1000

// forking is how many of the newest numbers each round of a walk tries again if it has not
// seen their processes. A fork takes its number some time before /proc shows the process,
// and its parent may have exited before the walk comes to it. The kernel is in that part of
// a fork for microseconds, so few numbers are given out meanwhile, even if it is preempted.
const forking = 512

// readTable walks over /proc. It reads the marks of a process together with its state, if markOf is
// not nil. If marks were read after the walk, a process that forked and exited in between would
// have none, and its child is not in the table.
func readTable(markOf func(pid int) mark) (table, error) {
	w := walk{table: table{}, markOf: markOf, room: make([]byte, maxStat)}
	first, last := 0, -1 // range of numbers to try again; -1: none yet
	for range mostRounds {
		newest, err := newestPID()
		if err != nil {
			return nil, err
		}
		if newest == last {
			break
		}
		if last < 0 || newest < last { // the numbers have wrapped around
			if err := w.readAll(); err != nil {
				return nil, err
			}
			first = max(newest-forking, 1)
		}
		// The numbers are read in rising order, so that a parent is read before the child that it
		// is forking.
		for pid := first; pid <= newest; pid++ {
			// Most numbers have no process, and kill(2) shows that faster than /proc.
			if _, seen := w.table[pid]; seen || errors.Is(unix.Kill(pid, 0), unix.ESRCH) || isThread(pid) {
				continue
			}
			if err := w.read(pid); err != nil {
				return nil, err
			}
		}
		last = newest
	}
	return w.table, nil
}

// readChildren reads the children of this process. It may omit one if others exit meanwhile. Every
// command that ends makes each caller of Run look at its children, so a walk over all processes would
// cost as much as the rest of a short command.
func readChildren() (table, error) {
	own := "/proc/" + strconv.Itoa(os.Getpid()) + "/task/"
	threads, err := os.ReadDir(own)
	if err != nil {
		return nil, err
	}
	w := walk{table: table{}, room: make([]byte, maxStat)}
	for _, thread := range threads { // a child belongs to the thread that started or adopted it
		text, err := os.ReadFile(own + thread.Name() + "/children")
		if _, gone := os.Stat(own + thread.Name()); errors.Is(err, fs.ErrNotExist) && gone == nil {
			return readTable(nil) // the kernel does not list children
		}
		for field := range bytes.FieldsSeq(text) {
			pid, err := strconv.Atoi(string(field))
			if err == nil {
				err = w.read(pid)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return w.table, nil
}

// A walk is the state of reading a table.
type walk struct {
	table
	markOf func(pid int) mark // nil: marks are not read
	room   []byte
}

// readAll reads all processes that /proc lists.
func (w *walk) readAll() error {
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
		if err := w.read(pid); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) read(pid int) error {
	s, err := readStatIn(pid, w.room)
	switch {
	case errors.Is(err, errGone):
		return nil
	case err != nil:
		return err
	case w.markOf != nil && !s.dead():
		s.mark = w.markOf(pid)
	}
	w.table[pid] = s
	return nil
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
	leader := statusOf(pid, "Tgid")
	return len(leader) > 0 && leader[0] != strconv.Itoa(pid)
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

// below adds every descendant of the processes in set to set.
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
