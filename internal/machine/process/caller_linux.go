package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"lockkeeper"
)

// shells lists the shells that programs use to run single commands.
var shells = []string{"sh", "dash", "bash", "zsh", "ash", "fish", "busybox"}

// CallingProgram finds the program that called this one, skipping shells that run only this
// command, and its terminal, if it has one. It returns nil if that program is gone.
func CallingProgram() (*lockkeeper.Process, string, error) {
	pid := os.Getppid()
	for range 8 {
		s, err := readStat(pid)
		if err != nil || pid <= 1 {
			return nil, "", nil
		}
		if !runsOneCommand(pid) {
			p, err := Identify(pid)
			if err != nil {
				return nil, "", nil // it ended meanwhile
			}
			tty := ""
			if s.tty != 0 {
				tty = terminalName(s.tty)
			}
			return &p, tty, nil
		}
		pid = s.parent
	}
	return nil, "", nil
}

// runsOneCommand reports whether a process is a shell with -c.
func runsOneCommand(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return false
	}
	args := bytes.Split(line, []byte{0})
	if !slices.Contains(shells, filepath.Base(string(args[0]))) {
		return false
	}
	return slices.ContainsFunc(args[1:], func(a []byte) bool { return len(a) > 1 && a[0] == '-' && a[1] != '-' && bytes.IndexByte(a, 'c') > 0 })
}
