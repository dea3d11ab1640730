package process

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"lockkeeper"
)

// Anchor is the process that lives as long as whoever calls, with this environment,
// goes on working: of an agent the agent itself, of a person the shell that leads
// the session of their terminal, of anything else the parent.
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
		if leader, err := Identify(self.session); err == nil { // it may be gone, and others go on in its terminal
			return leader, nil
		}
	}
	return Identify(self.parent)
}

// agentAbove is the nearest process above that does not itself run inside of an
// agent: it is the one that told the others that they do.
func agentAbove(s stat) (pid int, found bool) {
	for s.parent > 1 {
		pid := s.parent
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			return 0, false // another user's, or gone
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
