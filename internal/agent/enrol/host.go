package enrol

import (
	"slices"
	"strings"

	"lockkeeper/internal/agent/program"
)

// A Host is an agent program that can be enrolled.
type Host struct {
	Name    string // name for people
	Hook    string // the argument of `lockkeeper hook`
	Program string // the name of the host's program in PATH

	Trust     string // what a person must do before the host runs the hooks of a project; empty: nothing
	trustsOwn bool   // the host runs the hooks of the user's settings without that trust
	together  bool   // one hook that the host does not accept, in any file, makes it run no hooks

	files    []file   // files of the codebase that enrolling changes
	reads    []string // other files from which the host reads hooks; ~ is the user's home, * any name
	off      []switchOff
	env      string   // the setting that extends the environment of hooks; empty: none
	changing []string // events at which a hook may replace the input of a call
	plugins  bool     // a plugin can provide our hooks
	scripted bool     // the host has no hooks in settings; it loads our file as a script
	turns    []event
	limit    int        // timeout, in the host's own unit
	accepts  acceptance // the form of an accepted hook file
}

// file is a file that enrolling changes.
type file struct {
	path  string // path from the root, or from the user's home (~/)
	what  string // a description for people
	parts []part
}

// event is a moment at which a host runs a hook.
type event struct {
	name, matcher string
	before        bool // the event precedes a tool call, and a failure of the hook refuses the call
}

// switchOff is a setting that disables all hooks of a host, or ours.
type switchOff struct {
	file  string
	place []string
	on    any // the value that enables hooks; any other value counts as disabled
}

// Hosts lists the agents that can be enrolled.
func Hosts() []Host { return []Host{claude(), codex(), gemini(), opencode()} }

// except returns a matcher for all tools except those that change no file. The matcher also covers
// tools of MCP servers, and tools that a later version of the program has.
func except(name string, more ...string) string {
	return exceptBegin + strings.Join(append(more, program.Idle(name)...), "|") + exceptEnd
}

const exceptBegin, exceptEnd = "^(?!(", ")$)"

// excepted returns the tools that a matcher of this form leaves out.
func excepted(matcher string) (names []string, is bool) {
	list, begins := strings.CutPrefix(matcher, exceptBegin)
	list, ends := strings.CutSuffix(list, exceptEnd)
	return strings.Split(list, "|"), begins && ends
}

func claude() Host {
	h := Host{Name: "claude", Hook: "claude-code", Program: "claude", limit: 30, env: "env", plugins: true, accepts: claudeFile(), changing: []string{"PreToolUse", "PermissionRequest"},
		reads: []string{".claude/settings.local.json", "~/.claude/settings.json", "/etc/claude-code/managed-settings.json", "/etc/claude-code/managed-settings.d/*.json"},
		turns: []event{{"PreToolUse", except("claude", "Read"), true}, {"PostToolUse", except("claude"), false}, {"PostToolUseFailure", except("claude", "Read"), false},
			{"SessionStart", "", false}, {"UserPromptSubmit", "", false}, {"SubagentStop", "", false}, {"Stop", "", false}, {"SessionEnd", "", false}}}
	h.files = []file{{".claude/settings.json", "hooks", []part{hooks{}}}, {"~/.claude/settings.json", everywhere, []part{hooks{}}}, {".mcp.json", "MCP entry", []part{servers{"mcpServers"}}}, {"CLAUDE.md", "instruction", []part{section{}}}}
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

func gemini() Host {
	h := Host{Name: "gemini", Hook: "gemini", Program: "gemini", limit: 30_000, reads: []string{"~/.gemini/settings.json", "/etc/gemini-cli/*.json"}, changing: []string{"BeforeTool"}, accepts: geminiFile(),
		Trust: "start gemini here, and trust the folder", trustsOwn: true, together: true,
		turns: []event{{"BeforeTool", except("gemini", "read_file"), true}, {"AfterTool", except("gemini"), false},
			{"SessionStart", "", false}, {"SessionEnd", "", false}, {"BeforeAgent", "", false}, {"AfterAgent", "", false}}}
	h.files = []file{{".gemini/settings.json", "hooks and MCP entry", []part{hooks{}, servers{"mcpServers"}}}, {"~/.gemini/settings.json", everywhere, []part{hooks{}}}, {"GEMINI.md", "instruction", []part{section{}}}}
	for _, name := range h.settings() {
		h.off = append(h.off, switchOff{name, []string{"hooksConfig", "enabled"}, true}, switchOff{name, []string{"tools", "enableHooks"}, true}, switchOff{name, []string{"hooks", "enabled"}, true},
			switchOff{name, []string{"hooksConfig", "disabled"}, []any{}}, switchOff{name, []string{"hooks", "disabled"}, []any{}})
	}
	return h
}

// opencode also looks for plugins above its working directory, up to the root of the repository.
func opencode() Host {
	return Host{Name: "opencode", Hook: "opencode", Program: "opencode", limit: 30_000, scripted: true,
		reads: []string{"~/.config/opencode/plugins/lockkeeper.js"},
		turns: []event{{"PreToolUse", "", true}, {"PostToolUse", "", false}, {"PostToolUseFailure", "", false}, {"SessionStart", "", false}, {"UserPromptSubmit", "", false},
			{"SubagentStop", "", false}, {"Stop", "", false}, {"SessionEnd", "", false}},
		files: []file{{".opencode/plugins/lockkeeper.js", "hooks", []part{script{}}}, {"opencode.json", "MCP entry", []part{servers{"mcp"}}}, {"AGENTS.md", "instruction", []part{section{}}}}}
}

// everywhere describes hooks in the user's settings. A host that looks for a project's settings only
// in its working directory finds no others when it starts in a subdirectory. The command is the
// same as in the project's settings, so that the host runs it once. It finds the codebase from the
// files of a call, and ignores files outside of every codebase.
const everywhere = "hooks for sessions that start in a subdirectory"

// isHome reports whether a file is in the user's home.
func isHome(path string) bool { return strings.HasPrefix(path, "~/") }

// looksUp reports whether a host also finds the settings of a project above its working directory.
func (h Host) looksUp() bool {
	return !slices.ContainsFunc(h.files, func(f file) bool { return isHome(f.path) })
}

// settings lists the files from which a host reads hooks.
func (h Host) settings() []string { return append([]string{h.files[0].path}, h.reads...) }

// command returns the shell command that a host runs at an event. Before a tool call, when an
// agent waits, it prefers the small program, which starts in half the time. The command looks for
// it at run time, because people with different installations share the settings. If neither
// program is there, the shell ends with 127 and the agent is told what is missing.
func (h Host) command(starts string, ev event) string {
	c := starts + " hook " + h.Hook
	if ev.before {
		c = h.prefers(c) + " || { [ $? -ne 127 ] || echo '" + missing + "' >&2; exit 2; }"
	}
	return c
}

const missing = "The program lockkeeper is not installed or not in PATH. It checks each write, so every write is refused. Tell your user to install it."

func (h Host) prefers(otherwise string) string {
	return "if command -v lockkeeper-hook >/dev/null; then lockkeeper-hook " + h.Hook + "; else " + otherwise + "; fi"
}

// isOurs reports whether the command of a hook is ours, in any version.
func (h Host) isOurs(command string) bool {
	return strings.Contains(command, "lockkeeper hook "+h.Hook)
}
