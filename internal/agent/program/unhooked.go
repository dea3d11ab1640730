package program

import (
	"slices"
	"strings"
)

// Unhooked returns what in the command line or the environment of a running program keeps it from
// running hooks, or "" if nothing there does. The options of Claude Code and CLAUDE_CODE_SIMPLE
// were tried with the real program; the others follow its documentation and that of Codex.
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
		case name == "codex" && arg == "--disable" && value == "hooks":
			return arg + " " + value
		case name == "codex" && (arg == "-c" || arg == "--config") && strings.HasPrefix(strings.TrimPrefix(args[min(i+1, len(args)-1)], arg+"="), "features.hooks"):
			return arg + " features.hooks"
		}
	}
	for _, variable := range []string{"CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"} {
		for _, v := range env {
			if value, set := strings.CutPrefix(v, variable+"="); name == "claude" && set && value != "" && value != "0" {
				return variable
			}
		}
	}
	return ""
}
