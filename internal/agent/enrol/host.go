package enrol

import (
	"strings"

	"lockkeeper"
)

// Host is an agent's program that can be enrolled.
type Host struct {
	Name    string // as people call it
	Hook    string // as `lockkeeper hook` calls it
	Program string // in PATH

	Trust string // what a person does before it runs the hooks of a project; empty: nothing

	files    []file   // of the codebase, that enrolling changes
	reads    []string // further files in which it finds hooks; ~ is the user's home, * any name
	off      []switchOff
	env      string   // the setting that adds to the environment of hooks; empty if it has none
	changing []string // the events at which a hook may answer with another input of the call
	plugins  bool     // it can have our hooks from a plugin
	turns    []event
	limit    int        // of time, in the host's own unit
	accepts  acceptance // what a file with hooks has to be
}

// file is one that enrolling changes.
type file struct {
	path  string // from the root
	what  string // for people
	parts []part
}

// event is one at which a host runs a hook.
type event struct {
	name, matcher string
	before        bool // a call of a tool; a failure refuses it
}

// switchOff is a setting by which a host runs no hooks, or not ours.
type switchOff struct {
	file  string
	place []string
	on    any // with which they run; with any other they are taken not to
}

// Hosts are the agents that can be enrolled.
func Hosts() []Host { return []Host{claude(), codex(), gemini()} }

// HostOf finds a host by its name.
func HostOf(name string) (Host, error) {
	var names []string
	for _, h := range Hosts() {
		if h.Name == name {
			return h, nil
		}
		names = append(names, h.Name)
	}
	return Host{}, &lockkeeper.InputError{Field: "agent", Value: name, Reason: "it cannot be enrolled", Next: "use " + strings.Join(names, ", ")}
}

const claudeWrites = "Edit|Write|MultiEdit|NotebookEdit|Bash"

func claude() Host {
	h := Host{Name: "claude", Hook: "claude-code", Program: "claude", limit: 30, env: "env", plugins: true, accepts: claudeFile(), changing: []string{"PreToolUse", "PermissionRequest"},
		reads: []string{".claude/settings.local.json", "~/.claude/settings.json", "/etc/claude-code/managed-settings.json", "/etc/claude-code/managed-settings.d/*.json"},
		turns: []event{{"PreToolUse", claudeWrites, true}, {"PostToolUse", "Read|" + claudeWrites, false}, {"PostToolUseFailure", "Bash", false},
			{"SessionStart", "", false}, {"UserPromptSubmit", "", false}, {"SubagentStop", "", false}, {"Stop", "", false}, {"SessionEnd", "", false}}}
	h.files = []file{{".claude/settings.json", "hooks", []part{hooks{}}}, {".mcp.json", "MCP entry", []part{servers{}}}, {"CLAUDE.md", "instruction", []part{section{}}}}
	for _, name := range h.settings() {
		h.off = append(h.off, switchOff{name, []string{"disableAllHooks"}, false}, switchOff{name, []string{"allowManagedHooksOnly"}, false},
			switchOff{name, []string{"strictPluginOnlyCustomization"}, false})
	}
	return h
}

func codex() Host {
	h := Host{Name: "codex", Hook: "codex", Program: "codex", limit: 30, reads: []string{"~/.codex/hooks.json"}, changing: []string{"PreToolUse"}, accepts: codexFile(),
		Trust: "start codex here, trust the directory, and trust the hooks with /hooks",
		turns: []event{{"PreToolUse", "", true}, {"PostToolUse", "", false}, {"SessionStart", "", false}, {"UserPromptSubmit", "", false}, {"Stop", "", false}}}
	for _, name := range []string{".codex/config.toml", "~/.codex/config.toml", "/etc/codex/*.toml"} {
		h.off = append(h.off, switchOff{name, []string{"features", "hooks"}, true}, switchOff{name, []string{"features", "codex_hooks"}, true},
			switchOff{name, []string{"allow_managed_hooks_only"}, false})
	}
	h.files = []file{{".codex/hooks.json", "hooks", []part{hooks{}}}, {".codex/config.toml", "MCP entry", []part{tomlServer{}}}, {"AGENTS.md", "instruction", []part{section{}}}}
	return h
}

const geminiWrites = "write_file|replace|edit|run_shell_command"

func gemini() Host {
	h := Host{Name: "gemini", Hook: "gemini", Program: "gemini", limit: 30_000, reads: []string{"~/.gemini/settings.json", "/etc/gemini-cli/*.json"}, changing: []string{"BeforeTool"}, accepts: geminiFile(),
		Trust: "start gemini here, and trust the folder",
		turns: []event{{"BeforeTool", geminiWrites, true}, {"AfterTool", "read_file|" + geminiWrites, false},
			{"SessionStart", "", false}, {"SessionEnd", "", false}, {"BeforeAgent", "", false}, {"AfterAgent", "", false}}}
	h.files = []file{{".gemini/settings.json", "hooks and MCP entry", []part{hooks{}, servers{}}}, {"GEMINI.md", "instruction", []part{section{}}}}
	for _, name := range h.settings() {
		h.off = append(h.off, switchOff{name, []string{"hooksConfig", "enabled"}, true}, switchOff{name, []string{"tools", "enableHooks"}, true}, switchOff{name, []string{"hooks", "enabled"}, true},
			switchOff{name, []string{"hooksConfig", "disabled"}, []any{}}, switchOff{name, []string{"hooks", "disabled"}, []any{}})
	}
	return h
}

// settings are the files in which a host finds hooks.
func (h Host) settings() []string { return append([]string{h.files[0].path}, h.reads...) }

// command is what a host runs at an event. Hosts run it with a shell. Before a write, when
// an agent waits, the small program is taken where it is installed: it starts in half the
// time. That is found out when it runs, since settings are shared between people.
func (h Host) command(program string, ev event) string {
	c := program + " hook " + h.Hook
	if ev.before {
		c = "if command -v lockkeeper-hook >/dev/null; then lockkeeper-hook " + h.Hook + "; else " + c + "; fi || exit 2"
	}
	return c
}

// isOurs reports whether a command of a hook is ours, in any version.
func (h Host) isOurs(command string) bool {
	return strings.Contains(command, "lockkeeper hook "+h.Hook)
}
