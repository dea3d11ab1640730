package process

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"lockkeeper"
)

// Anchor returns the process that lives as long as the caller with this environment works:
// for an agent the agent itself, for a person the shell that leads the session of their
// terminal, otherwise the parent.
func Anchor(env []string) (lockkeeper.Process, error) {
	self, err := readStat(os.Getpid())
	if err != nil {
		return lockkeeper.Process{}, err
	}
	if _, inside := AgentEnvironment(env); inside {
		if agent, found := agentAbove(self); found {
			return Identify(agent)
		}
	}
	if self.tty != 0 {
		if leader, err := Identify(self.session); err == nil { // it may be gone, while other processes still use its terminal
			return leader, nil
		}
	}
	return Identify(self.parent)
}

// agentAbove returns the nearest ancestor whose environment is not that of an agent's
// command. It is the agent that set the signs for the others.
func agentAbove(s stat) (pid int, found bool) {
	for s.parent > 1 {
		pid := s.parent
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			return 0, false // the process belongs to another user, or is gone
		}
		env := strings.Split(string(bytes.TrimRight(text, "\x00")), "\x00")
		if _, inside := AgentEnvironment(env); !inside {
			return pid, true
		}
		if s, err = readStat(pid); err != nil {
			return 0, false
		}
	}
	return 0, false
}
