package process

import (
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
	Agent string // the agent program that it runs; empty if it is not a known one
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
	TTY     string // empty: it has no terminal
	Dir     string // its working directory

	Env []string // its environment at the start; nil: unknown
}

// interpreters run programs whose name comes after their own.
var interpreters = []string{"node", "nodejs", "bun", "deno", "python", "python3", "sh", "dash", "bash", "zsh", "env"}

// agentOf returns the agent program that a process runs, or "". name is the kernel's name of the
// process, args its command line. A process chooses both, so this is a sign like
// AgentEnvironment: it refuses actions and never permits one.
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
