package enrol

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"lockkeeper/internal/encoding/jsonplace"
)

// What a host takes for a file with hooks was seen with the programs themselves (test/agents).
// Claude Code and Codex read such a file as a whole or not at all: one value of a wrong kind
// anywhere, also in a foreign hook, and every hook in that file is dropped, silently.
// Gemini CLI takes wrong settings, and stumbles over some wrong hooks. These are no copies of
// all that they know: only what is in these shapes counts as accepted.

// acceptance is what a file with hooks has to be, for its host to run them.
type acceptance struct {
	shape    shape
	comments bool // it may have
	mark     bool // of the order of bytes, at its beginning; it may have
}

// claudeHook is any hook. Its type decides what else it has.
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

// claudeFile is a file of settings that Claude Code takes.
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

// codexFile is one that Codex takes: it has hooks alone.
func codexFile() acceptance {
	entry := object(members{"type": unsure(oneOf("command")), "command": aText(), "timeout": aCount(), "statusMessage": aText()}, "type", "command")
	group := object(members{"matcher": aText(), "hooks": listOf(entry)}, "hooks")
	return acceptance{shape: object(members{"description": aText(), "hooks": mapOf(listOf(group))})}
}

// geminiFile is a file whose hooks Gemini CLI runs. Its other settings do not matter. Older
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

// doubt says why a host may not run the hooks in a file whose text could be read; empty: it is
// known to.
func (h Host) doubt(name, text string) string {
	at := func(offset int) string {
		line, column := jsonplace.Position([]byte(text), int64(offset))
		return fmt.Sprintf("%s:%d:%d", name, line, column)
	}
	never := h.Name + " runs no hooks of such a file: "
	bare := strings.TrimPrefix(text, "\ufeff")
	if bare != text && !h.accepts.mark {
		return never + at(0) + ": it begins with a mark of the order of bytes"
	}
	var wrong *json.SyntaxError
	if err := json.Unmarshal([]byte(bare), new(any)); err != nil && !h.accepts.comments {
		offset := 0
		if errors.As(err, &wrong) {
			offset = len(text) - len(bare) + int(wrong.Offset) - 1
		}
		return never + at(offset) + ": it is no strict JSON, which has no comments: " + err.Error()
	}
	root, err := parseJSON(text)
	if err != nil {
		return never + at(0) + ": " + err.Error()
	}
	switch m := h.accepts.shape(root, ""); {
	case m == nil:
		return ""
	case m.known:
		return never + at(m.at.StartOffset) + ": " + m.place + " is missing, or no value that it takes"
	default:
		return "whether " + h.Name + " runs hooks of such a file is not known: " + at(m.at.StartOffset) + ": " + m.place
	}
}
