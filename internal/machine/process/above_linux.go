package process

import (
	"os"
	"strconv"
	"strings"
)

// Above lists the ancestors of this process, nearest first, up to the first that is gone or
// hidden. A command that was detached from its parent has none.
func Above() (list []Ancestor) {
	s, err := readStat(os.Getpid())
	for err == nil && s.parent > 0 {
		pid := s.parent
		if s, err = readStat(pid); err != nil {
			break
		}
		who, gone := Identify(pid)
		if gone != nil {
			break
		}
		var args []string
		if line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); err == nil { // else its name says enough
			args = strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
		}
		list = append(list, Ancestor{Process: who, Agent: agentOf(s.name, args)})
	}
	return list
}
