package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

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
			return &p, terminalName(s.tty), nil
		}
		pid = s.parent
	}
	return nil, "", nil
}

// runsOneCommand reports whether a process is a shell with -c.
func runsOneCommand(pid int) bool {
	args := readWords(pid, "cmdline")
	return len(args) > 1 && slices.Contains(shells, filepath.Base(args[0])) &&
		slices.ContainsFunc(args[1:], func(a string) bool { return len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "c") })
}
