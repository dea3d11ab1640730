package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Named lists the running programs with one of the names whose working directory is
// readable, oldest first. Processes below another one in the list are left out.
func Named(names ...string) ([]Running, error) {
	t, err := readTable(nil)
	if err != nil {
		return nil, err
	}
	found := map[int]string{}
	for pid, s := range t {
		if name := programOf(s, names); name != "" && !s.dead() {
			found[pid] = name
		}
	}
	var list []Running
	for pid, name := range found {
		if isBelow(t, pid, found) {
			continue
		}
		dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
		if err != nil {
			continue // the process belongs to another user, or is gone
		}
		p, err := Identify(pid)
		if err != nil {
			continue // the process ended meanwhile
		}
		list = append(list, Running{Process: p, Program: name, Dir: dir, TTY: terminalName(t[pid].tty), Env: readWords(pid, "environ"), Args: readWords(pid, "cmdline")})
	}
	slices.SortFunc(list, func(a, b Running) int { return int(int64(t[a.PID].start) - int64(t[b.PID].start)) })
	return list, nil
}

// isBelow reports whether an ancestor of a process was found too.
func isBelow(t table, pid int, found map[int]string) bool {
	for above := range t.ancestors(t[pid].parent) {
		if found[above] != "" {
			return true
		}
	}
	return false
}

// programOf returns the name of the program that a process runs, or "". Some programs are
// scripts, which appear as an argument of their interpreter.
func programOf(s stat, names []string) string {
	if slices.Contains(names, s.name) {
		return s.name
	}
	if s.name != "node" && s.name != "MainThread" && s.name != "bun" {
		return ""
	}
	for i, arg := range readWords(s.pid, "cmdline") {
		if name := filepath.Base(arg); i < 2 && slices.Contains(names, name) {
			return name
		}
	}
	return ""
}
