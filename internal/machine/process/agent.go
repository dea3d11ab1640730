package process

import (
	"regexp"
	"strings"
	"sync"
)

// agentSigns are variables that coding agents set for what they run. A trailing
// star matches every variable that begins so. Order decides the name only.
//
// Documented by their makers: CLAUDECODE (Claude Code, environment variables),
// GEMINI_CLI (Gemini CLI, shell tool), CODEX_SANDBOX and
// CODEX_SANDBOX_NETWORK_DISABLED (Codex, notes for agents in its repository).
// Read from source or seen at work, and so without a promise:
// CLAUDE_CODE_ENTRYPOINT, CODEX_THREAD_ID, CODEX_CI, CURSOR_AGENT, OPENCODE,
// COPILOT_CLI. Conventions between tools: AI_AGENT, AGENT.
//
// Two say less than that an agent runs: CURSOR_TRACE_ID is also set for a
// person's own terminal inside Cursor, and AIDER_* is also how people configure
// Aider. They count because a force act refused to a person costs a line, and
// one permitted to an agent costs somebody's work.
var agentSigns = []struct{ variable, name string }{
	{GrantVariable, "lockkeeper"},
	{"CLAUDECODE", "claude"},
	{"CLAUDE_CODE_ENTRYPOINT", "claude"},
	{"CODEX_SANDBOX", "codex"},
	{"CODEX_SANDBOX_NETWORK_DISABLED", "codex"},
	{"CODEX_THREAD_ID", "codex"},
	{"CODEX_CI", "codex"},
	{"GEMINI_CLI", "gemini"},
	{"CURSOR_AGENT", "cursor"},
	{"CURSOR_TRACE_ID", "cursor"},
	{"OPENCODE", "opencode"},
	{"COPILOT_CLI", "copilot"},
	{"AIDER_*", "aider"},
	{"AI_AGENT", ""},
	{"AGENT", ""},
}

var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9@._-]{0,39}$`) })

// AgentEnvironment reports whether an environment is that of something a coding
// agent runs, and which agent. It is a sign, not a proof: an agent can clear
// its environment, so this refuses acts and never permits any.
func AgentEnvironment(env []string) (name string, inside bool) {
	for _, sign := range agentSigns {
		prefix, open := strings.CutSuffix(sign.variable, "*")
		for _, entry := range env {
			variable, value, _ := strings.Cut(entry, "=")
			if variable != prefix && !(open && strings.HasPrefix(variable, prefix)) || isOff(value) {
				continue
			}
			switch {
			case sign.name != "":
				return sign.name, true
			case plainName().MatchString(value) && !strings.EqualFold(value, "true"):
				return value, true
			default:
				return "agent", true
			}
		}
	}
	return "", false
}

// isOff reports whether a value says that a variable does not apply.
func isOff(value string) bool {
	return value == "" || value == "0" || strings.EqualFold(value, "false")
}
