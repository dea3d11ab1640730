package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A stat is the part of /proc/<pid>/stat that this package uses.
type stat struct {
	pid, parent, group, session int
	tty                         uint64
	threads                     int
	state                       byte
	start                       uint64 // clock ticks since boot
	name                        string

	mark mark // set by readTable
}

// dead reports whether no thread of the process can run any more. A leader that
// exited before its other threads shows as a zombie too, and is not dead.
func (s stat) dead() bool {
	return s.state == 'X' || s.state == 'x' || s.state == 'Z' && s.threads <= 1
}

// errGone reports that a process does not exist.
var errGone = errors.New("no such process")

// readStat reads the state of a process, or returns errGone if the process does not exist.
func readStat(pid int) (stat, error) { return readStatIn(pid, make([]byte, maxStat)) }

// readStatIn does the same as readStat with a given buffer.
func readStatIn(pid int, room []byte) (stat, error) {
	n, err := readOnce("/proc/"+strconv.Itoa(pid)+"/stat", room)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return stat{}, errGone
	case err != nil:
		return stat{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	return parseStat(room[:n])
}

// maxStat is more than the size of /proc/<pid>/stat: a name of at most 64 bytes and some fifty
// numbers.
const maxStat = 2048

// readOnce reads a file of /proc with one system call, so that its content is consistent.
// A walk over /proc reads hundreds of them.
func readOnce(path string, room []byte) (n int, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	n, err = unix.Read(fd, room)
	return n, errors.Join(err, unix.Close(fd))
}

// readWords reads a file of a process with words terminated by NUL bytes: cmdline or environ. It
// returns nil if the file is empty or cannot be read.
func readWords(pid int, file string) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if text = bytes.TrimRight(text, "\x00"); err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(string(text), "\x00")
}

// statusOf reads a line of /proc/<pid>/status.
func statusOf(pid int, name string) []string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, after, _ := strings.Cut(string(text), "\n"+name+":")
	line, _, _ := strings.Cut(after, "\n")
	return strings.Fields(line)
}

// parseStat splits at the last closing parenthesis. The process chooses the name before it, which
// may contain spaces, parentheses and newlines. After it come only numbers and the state.
func parseStat(b []byte) (stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return stat{}, fmt.Errorf("process state %q is not understood", b)
	}
	var f [20][]byte // f[i] is the field that proc(5) numbers i+3
	n := 0
	for field := range bytes.FieldsSeq(b[end+1:]) {
		if n == len(f) {
			break
		}
		f[n] = field
		n++
	}
	if n < len(f) || len(f[0]) != 1 {
		return stat{}, fmt.Errorf("process state %q is not understood", b)
	}
	s := stat{state: f[0][0], name: string(b[open+1 : end])}
	var bad error
	num := func(text []byte) int64 {
		n, err := strconv.ParseInt(string(text), 10, 64)
		bad = errors.Join(bad, err)
		return n
	}
	s.pid = int(num(bytes.TrimSpace(b[:open])))
	s.parent, s.group, s.session = int(num(f[1])), int(num(f[2])), int(num(f[3]))
	s.tty = uint64(uint32(num(f[4])))
	s.threads = int(num(f[17]))
	s.start = uint64(num(f[19]))
	if bad != nil {
		return stat{}, fmt.Errorf("process state %q is not understood: %w", b, bad)
	}
	return s, nil
}

// A mark says whether the environment of a process names a grant.
type mark uint8

const (
	unmarked   mark = iota
	marked          // the process runs under the grant
	unreadable      // the process belongs to another user, or its program overwrote the environment
)

// markOf reads the environment a process was started with.
func markOf(pid int, grantID string) mark {
	env := readWords(pid, "environ")
	switch {
	case env == nil:
		return unreadable
	case slices.ContainsFunc(env, func(v string) bool {
		list, ok := strings.CutPrefix(v, grantsVariable+"=")
		return v == GrantVariable+"="+grantID || ok && slices.Contains(strings.Split(list, ":"), grantID)
	}):
		return marked
	}
	return unmarked
}
