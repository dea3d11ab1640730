package process

import (
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
)

// Ancestor is a process that this one was started from, directly or not.
type Ancestor struct {
	lockkeeper.Process
	Agent string // the coding agent that it is, by the name of its program; empty: it is none that is known
}

// interpreters run programs whose name comes after their own.
var interpreters = []string{"node", "nodejs", "bun", "deno", "python", "python3", "sh", "dash", "bash", "zsh", "env"}

// agentOf is the coding agent that a process is: name is what the kernel calls it, args its
// command line. A process chooses both, so this is a sign like AgentEnvironment: it refuses
// acts and never permits any.
func agentOf(name string, args []string) string {
	programs := []string{name}
	for i, arg := range args {
		if program := filepath.Base(arg); arg != "" && (i == 0 || !strings.HasPrefix(arg, "-")) {
			if programs = append(programs, program); !slices.Contains(interpreters, program) {
				break
			}
		}
	}
	for _, program := range programs {
		switch program = strings.TrimSuffix(program, ".js"); program {
		case "claude", "codex", "gemini":
			return program
		}
	}
	return ""
}
