package process

import (
	"regexp"
	"strings"
	"sync"

	"lockkeeper/internal/agent/program"
)

// A sign is an environment variable that coding agents set for the commands they run. A
// trailing star matches every variable with that prefix.
type sign struct{ variable, agent string }

// otherSigns lists the signs of agents that Lockkeeper does not start. AI_AGENT and AGENT are
// conventions between tools.
//
// Two are weak signs: CURSOR_TRACE_ID is also set in a person's own terminal inside Cursor, and
// people configure Aider with AIDER_*. They count because refusing an administrative command to
// a person costs one line, and permitting it to an agent can cost another person's work.
var otherSigns = []sign{
	{"CURSOR_AGENT", "cursor"},
	{"CURSOR_TRACE_ID", "cursor"},
	{"OPENCODE", "opencode"},
	{"COPILOT_CLI", "copilot"},
	{"AIDER_*", "aider"},
	{"AI_AGENT", ""},
	{"AGENT", ""},
}

// signs lists all signs. The first that applies names the agent.
func signs() []sign {
	list := []sign{{GrantVariable, "lockkeeper"}}
	for _, p := range program.All() {
		for _, variable := range p.Signs {
			list = append(list, sign{variable, p.Name})
		}
	}
	return append(list, otherSigns...)
}

var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9@._-]{0,39}$`) })

// AgentEnvironment reports whether an environment is that of a command of a coding agent, and
// of which agent. It is a sign, not a proof: an agent can clear its environment. So callers
// use it to refuse an action, never to permit one.
func AgentEnvironment(env []string) (name string, inside bool) {
	for _, sign := range signs() {
		prefix, open := strings.CutSuffix(sign.variable, "*")
		for _, entry := range env {
			variable, value, _ := strings.Cut(entry, "=")
			if variable != prefix && !(open && strings.HasPrefix(variable, prefix)) || isOff(value) {
				continue
			}
			switch {
			case sign.agent != "":
				return sign.agent, true
			case plainName().MatchString(value) && !strings.EqualFold(value, "true"):
				return value, true
			default:
				return "agent", true
			}
		}
	}
	return "", false
}

func isOff(value string) bool {
	return value == "" || value == "0" || strings.EqualFold(value, "false")
}
