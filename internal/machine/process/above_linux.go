package process

import (
	"os"
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
		list = append(list, Ancestor{Process: who, Agent: agentOf(s.name, readWords(pid, "cmdline"))})
	}
	return list
}
