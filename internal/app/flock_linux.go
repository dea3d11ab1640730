package app

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// flockPIDs lists who has a lock on a file, as far as /proc tells.
func flockPIDs(f *os.File) (pids []int) {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return nil
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		// 1: FLOCK  ADVISORY  READ 4711 fe:01:393 0 EOF
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

// commandOf is how a process was called, cut to a line's length.
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
