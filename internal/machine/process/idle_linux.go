package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"lockkeeper"
)

// A Moment is a state of the processes below a keeper. It proves later that none of them ran since.
type Moment struct {
	keeper  int
	threads map[string]string // how long and how often each thread ran, by its directory in /proc
}

// Moment returns the state of the command that p supervises, or nil if that cannot be seen.
// before is an earlier Moment of the same command, or nil. If no process of the command ran since,
// before is returned, without a walk over all processes.
func (h *Host) Moment(p lockkeeper.Process, before *Moment) (*Moment, error) {
	if p.Keeper == 0 || !h.sees(p) {
		return nil, nil
	}
	if before != nil && before.keeper == p.Group && before.Idle() {
		return before, nil
	}
	t, err := readTable(nil)
	if err != nil || t[p.Group].start != p.Keeper {
		return nil, err
	}
	set := map[int]bool{p.Group: true} // orphans of the command become children of the keeper
	t.below(set)
	delete(set, p.Group)
	m := &Moment{keeper: p.Group, threads: map[string]string{}}
	for pid := range set {
		if t[pid].dead() {
			continue
		}
		names, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*")
		if err != nil || len(names) == 0 {
			return nil, err
		}
		for _, name := range names {
			if m.threads[name] = ranOf(name); m.threads[name] == "" {
				return nil, nil
			}
		}
	}
	if len(m.threads) == 0 {
		return nil, nil
	}
	return m, nil
}

// Idle reports whether no process of the command ran since the moment. A process that began since was
// started by one that ran.
func (m *Moment) Idle() bool {
	for name, ran := range m.threads {
		if ranOf(name) != ran {
			return false
		}
	}
	return true
}

// Has reports whether a process belonged to the command.
func (m *Moment) Has(pid int) bool {
	id := strconv.Itoa(pid)
	return m.threads["/proc/"+id+"/task/"+id] != ""
}

// Alone reports whether no process of the command has a socket, over which it may let another program
// work for it.
func (m *Moment) Alone() (bool, error) {
	for name := range m.threads {
		list, err := os.ReadDir(name + "/fd")
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		for _, e := range list {
			to, err := os.Readlink(name + "/fd/" + e.Name())
			if err != nil || strings.HasPrefix(to, "socket:") {
				return false, nil
			}
		}
	}
	return true, nil
}

// ranOf returns how long and how often a thread has run, or "" if the thread runs or this is unknown.
// The kernel counts a run when it begins, so a thread that runs for an instant differs too.
func ranOf(thread string) string {
	room := make([]byte, maxStat)
	n, err := readOnce(thread+"/schedstat", room)
	if err != nil {
		return ""
	}
	f := bytes.Fields(room[:n])
	if len(f) < 3 || string(f[2]) == "0" { // the kernel does not count
		return ""
	}
	ran := string(f[0]) + " " + string(f[2])
	if n, err = readOnce(thread+"/stat", room); err != nil {
		return ""
	}
	s, err := parseStat(room[:n])
	if err != nil || s.state == 'R' {
		return ""
	}
	return strconv.FormatUint(s.start, 10) + " " + ran
}

// WorksIn reports whether the working directory of a process is a directory or below it. It is false if
// that cannot be seen.
func (h *Host) WorksIn(p lockkeeper.Process, dir string) bool {
	if !h.sees(p) || h.Liveness(p) != lockkeeper.ProcessAlive {
		return false
	}
	at, err := os.Readlink("/proc/" + strconv.Itoa(p.PID) + "/cwd")
	return err == nil && (at == dir || strings.HasPrefix(at, dir+"/"))
}
