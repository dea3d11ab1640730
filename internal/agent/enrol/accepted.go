package enrol

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"lockkeeper/internal/encoding/jsonplace"
)

// The shapes in this file describe the hook files that each host was observed to accept
// (test/agents). Claude Code and Codex accept such a file as a whole or not at all: one value of
// a wrong type anywhere, even in a hook of another program, silently drops every hook in the
// file. Gemini CLI accepts wrong settings, but fails on some wrong hooks. The shapes do not list
// everything that the hosts know. Only values that match them count as accepted.

// acceptance describes a file whose hooks a host runs.
type acceptance struct {
	shape    shape
	comments bool // comments are allowed
	mark     bool // a byte order mark is allowed at the beginning
}

// claudeHook checks one hook. Its type decides which other keys it has.
func claudeHook(n *node, place string) *misfit {
	common := members{"type": aText(), "timeout": aNumber(), "statusMessage": aText(), "once": aFlag(), "if": aText(), "name": aText(), "description": aText()}
	with := func(more members, needs ...string) *misfit {
		for key, one := range common {
			more[key] = one
		}
		return object(more, needs...)(n, place)
	}
	switch n.find("type").text() {
	case "command":
		return with(members{"command": aText(), "async": aFlag()}, "command")
	case "prompt", "agent":
		return with(members{"prompt": aText(), "model": aText()}, "prompt")
	case "mcp_tool":
		return with(members{"server": aText(), "tool": aText()}, "server", "tool")
	case "http":
		return with(members{"url": anURL(), "headers": mapOf(aText())}, "url")
	}
	return &misfit{n, join(place, "type"), true}
}

// claudeFile describes a settings file that Claude Code accepts.
func claudeFile() acceptance {
	texts, rules, group := listOf(aText()), listOf(unsure(aText())), object(members{"matcher": aText(), "hooks": listOf(claudeHook)}, "hooks")
	known := members{
		"hooks": mapOf(func(n *node, place string) *misfit {
			if n.kind() != '[' {
				return &misfit{n, place, false}
			}
			return listOf(group)(n, place)
		}),
		"env":               mapOf(unsure(kind(func(n *node) bool { return n.kind() != '{' && n.kind() != '[' }))),
		"cleanupPeriodDays": aCount(),
		"permissions": object(members{"allow": rules, "deny": rules, "ask": rules, "additionalDirectories": texts,
			"defaultMode": unsure(oneOf("default", "acceptEdits", "plan", "bypassPermissions")), "disableBypassPermissionsMode": oneOf("disable")}),
		"statusLine":     object(members{"type": oneOf("command"), "command": aText(), "padding": kind(func(n *node) bool { _, is := n.plain().(float64); return is })}, "type", "command"),
		"attribution":    object(members{"commit": aText(), "pr": aText()}),
		"enabledPlugins": mapOf(aFlag()),
		"extraKnownMarketplaces": mapOf(object(members{"source": object(members{"source": oneOf("github"), "repo": aText()}, "source", "repo")},
			"source")),
		"sandbox": object(members{"enabled": aFlag(), "autoAllowBashIfSandboxed": aFlag(), "excludedCommands": texts}),
	}
	for _, key := range []string{"$schema", "model", "apiKeyHelper", "outputStyle", "description", "language", "plansDirectory", "agent", "awsAuthRefresh",
		"awsCredentialExport", "gcpAuthRefresh", "otelHeadersHelper", "autoMemoryDirectory", "prUrlTemplate", "minimumVersion", "advisorModel"} {
		known[key] = aText()
	}
	for _, key := range []string{"disableAllHooks", "allowManagedHooksOnly", "enableAllProjectMcpServers", "includeCoAuthoredBy", "includeGitInstructions",
		"alwaysThinkingEnabled", "spinnerTipsEnabled", "respectGitignore", "autoMemoryEnabled", "fastMode", "skipWebFetchPreflight", "terminalProgressBarEnabled",
		"showTurnDuration", "prefersReducedMotion", "showThinkingSummaries", "disableSkillShellExecution", "autoCompactEnabled", "fileCheckpointingEnabled",
		"respondToBashCommands", "verbose"} {
		known[key] = aFlag()
	}
	for _, key := range []string{"enabledMcpjsonServers", "disabledMcpjsonServers", "companyAnnouncements", "claudeMdExcludes", "availableModels", "skippedPlugins"} {
		known[key] = texts
	}
	for key, words := range map[string][]string{"effortLevel": {"low", "medium", "high"}, "autoUpdatesChannel": {"stable", "latest"}, "teammateMode": {"auto", "in-process", "tmux"},
		"forceLoginMethod": {"claudeai", "console"}} {
		known[key] = unsure(oneOf(words...))
	}
	return acceptance{shape: object(known), mark: true}
}

// codexFile describes a hook file that Codex accepts. It contains only hooks.
func codexFile() acceptance {
	entry := object(members{"type": unsure(oneOf("command")), "command": aText(), "timeout": aCount(), "statusMessage": aText()}, "type", "command")
	group := object(members{"matcher": aText(), "hooks": listOf(entry)}, "hooks")
	return acceptance{shape: object(members{"description": aText(), "hooks": mapOf(listOf(group))})}
}

// geminiFile describes a file whose hooks Gemini CLI runs. Its other settings do not matter. Older
// versions had settings among the hooks.
func geminiFile() acceptance {
	entry := object(members{"type": oneOf("command"), "command": aText(), "timeout": aNumber(), "name": aText(), "description": aText()}, "type", "command")
	group := object(members{"matcher": aText(), "sequential": aFlag(), "hooks": listOf(entry)}, "hooks")
	among := func(key string) shape {
		switch key {
		case "enabled":
			return aFlag()
		case "disabled":
			return listOf(aText())
		}
		return listOf(group)
	}
	settings := func(key string) shape {
		if key == "hooks" {
			return func(n *node, place string) *misfit { return each(n, place, among) }
		}
		return func(*node, string) *misfit { return nil }
	}
	return acceptance{comments: true, shape: unsure(func(n *node, place string) *misfit { return each(n, place, settings) })}
}

// doubt says why a host may not run the hooks in a readable file, or returns "" if it is known to
// run them.
func (h Host) doubt(name, text string) string {
	at := func(offset int) string {
		line, column := jsonplace.Position([]byte(text), int64(offset))
		return fmt.Sprintf("%s:%d:%d", name, line, column)
	}
	never := h.Name + " does not run hooks from this file: "
	bare := strings.TrimPrefix(text, "\ufeff")
	if bare != text && !h.accepts.mark {
		return never + at(0) + ": it begins with a byte order mark"
	}
	var wrong *json.SyntaxError
	if err := json.Unmarshal([]byte(bare), new(any)); err != nil && !h.accepts.comments {
		offset := 0
		if errors.As(err, &wrong) {
			offset = len(text) - len(bare) + int(wrong.Offset) - 1
		}
		return never + at(offset) + ": it is not strict JSON, which has no comments: " + err.Error()
	}
	root, err := parseJSON(text)
	if err != nil {
		return never + at(0) + ": " + err.Error()
	}
	switch m := h.accepts.shape(root, ""); {
	case m == nil:
		return ""
	case m.known:
		return never + at(m.at.StartOffset) + ": " + m.place + " is missing or invalid"
	default:
		return "whether " + h.Name + " runs hooks from this file is unknown: " + at(m.at.StartOffset) + ": " + m.place
	}
}
