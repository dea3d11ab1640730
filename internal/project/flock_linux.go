package project

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// flockPIDs lists the processes that hold a lock on a file, as far as /proc shows them. The
// kernel returns the table of locks in pieces, and a line can be missing if locks come and go
// between two pieces. So a table without the file is read again.
func flockPIDs(f *os.File) (pids []int) {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return nil
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for range 10 {
		text, err := os.ReadFile("/proc/locks")
		if err != nil {
			return nil
		}
		if pids = holdersIn(string(text), file); len(pids) > 0 {
			return pids
		}
	}
	return nil
}

// holdersIn lists the processes in the kernel's table of locks that hold a flock on a file.
func holdersIn(table, file string) (pids []int) {
	for line := range strings.Lines(table) {
		// An example of a line: 1: FLOCK ADVISORY READ 4711 fe:01:393 0 EOF
		at := strings.Fields(line)
		if len(at) < 6 || at[1] != "FLOCK" || at[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(at[4]); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// commandOf returns the command line of a process, truncated.
func commandOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	args := strings.ToValidUTF8(string(bytes.ReplaceAll(bytes.TrimRight(text, "\x00"), []byte{0}, []byte{' '})), "?")
	args = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, args)
	if cut := []rune(args); len(cut) > 60 {
		return string(cut[:60]) + "…"
	}
	return args
}
