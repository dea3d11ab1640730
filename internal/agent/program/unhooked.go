package program

import (
	"slices"
	"strings"
)

// Unhooked returns the option or variable that keeps a running program from running hooks, or "" if
// there is none. The options of Claude Code, CLAUDE_CODE_SIMPLE, and those of opencode were tried
// with the real programs. The others follow the documentation of Claude Code and Codex.
func Unhooked(name string, args, env []string) string {
	for i, arg := range args {
		value, joined := "", false
		if arg, value, joined = strings.Cut(arg, "="); !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch {
		case name == "claude" && (arg == "--bare" || arg == "--safe-mode"):
			return arg
		case name == "claude" && arg == "--setting-sources" && !slices.Contains(strings.Split(value, ","), "user"):
			return arg + " " + value
		case name == "claude" && arg == "--settings" && strings.Contains(value, "disableAllHooks"):
			return arg + " with disableAllHooks"
		case name == "opencode" && arg == "--pure":
			return arg
		case name == "codex" && arg == "--disable" && value == "hooks":
			return arg + " " + value
		case name == "codex" && (arg == "-c" || arg == "--config") && strings.HasPrefix(strings.TrimPrefix(args[min(i+1, len(args)-1)], arg+"="), "features.hooks"):
			return arg + " features.hooks"
		}
	}
	for _, variable := range disabling[name] {
		for _, v := range env {
			if value, set := strings.CutPrefix(v, variable+"="); set && value != "" && value != "0" && value != "false" {
				return variable
			}
		}
	}
	return ""
}

// disabling lists the variables that keep a program from running the hooks of a project.
var disabling = map[string][]string{
	"claude":   {"CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"},
	"opencode": {"OPENCODE_PURE", "OPENCODE_DISABLE_PROJECT_CONFIG"},
}
