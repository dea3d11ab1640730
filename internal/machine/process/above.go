package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/agent/program"
)

// An Ancestor is a process that started this one, directly or not.
type Ancestor struct {
	lockkeeper.Process
	Agent string // the agent program that the process runs; empty: no known one
}

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

// A Running is a process that was found by the name of its program.
type Running struct {
	lockkeeper.Process
	Program string // one of the names that were searched for
	TTY     string // empty: the process has no terminal
	Dir     string // working directory of the process

	Env  []string // environment of the process at its start; nil: unknown
	Args []string // command line of the process
}

// interpreters run programs whose name comes after their own.
var interpreters = []string{"node", "nodejs", "bun", "deno", "python", "python3", "sh", "dash", "bash", "zsh", "env"}

// agentOf returns the agent program that a process runs, or "". name is the kernel's name of the
// process, args its command line. A process chooses both, so the answer is only a
// sign, as with AgentEnvironment: callers use it to refuse an action, never to permit one.
func agentOf(name string, args []string) string {
	names := []string{name}
	for i, arg := range args {
		if base := filepath.Base(arg); arg != "" && (i == 0 || !strings.HasPrefix(arg, "-")) {
			if names = append(names, base); !slices.Contains(interpreters, base) {
				break
			}
		}
	}
	for _, name := range names {
		if p, known := program.ByName(strings.TrimSuffix(name, ".js")); known {
			return p.Name
		}
	}
	return ""
}

// Anchor returns the process that lives as long as the caller with this environment works:
// for an agent the agent itself, for a person the shell that leads the session of their
// terminal, otherwise the parent. It returns ErrOutside if the parent is outside of this PID
// namespace, as under docker exec and nsenter.
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
	if self.tty != 0 && self.session != self.pid {
		if leader, err := Identify(self.session); err == nil { // the leader may be gone, while other processes still use its terminal
			return leader, nil
		}
	}
	if self.parent == 0 {
		return lockkeeper.Process{}, ErrOutside
	}
	return Identify(self.parent)
}

// ErrOutside reports that a process was started from outside of its PID namespace, so the program
// that started it cannot be identified.
var ErrOutside = errors.New("the program that started this command is outside of its container (PID namespace)")

// agentAbove returns the nearest ancestor whose environment is not that of an agent's command. That
// ancestor is the agent, which set the signs for the processes below it.
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
				return nil, "", nil // the process ended meanwhile
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
