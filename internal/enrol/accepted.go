package enrol

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper/internal/jsonplace"
)

// Claude Code reads a settings file as a whole or not at all: one value of a wrong kind
// anywhere, also in somebody else's hook, and every hook in that file is dropped, silently.
// Which values it takes was seen with the program itself (test/agents). This is no copy of
// all that it knows: only what is in these shapes counts as accepted.

// misfit is a value that a host does not accept, or of which that is not known.
type misfit struct {
	at    *node
	place string // the names that lead to it
	known bool   // to be refused
}

// shape says what a value has to be; nil: it is that.
type shape func(n *node, place string) *misfit

// kind is a value of one kind.
func kind(is func(n *node) bool) shape {
	return func(n *node, place string) *misfit {
		if is(n) {
			return nil
		}
		return &misfit{n, place, true}
	}
}

func aText() shape { return kind(isText) }

func aFlag() shape {
	return kind(func(n *node) bool { _, is := n.value.(bool); return is })
}

// aNumber is one that is more than nothing, as all are that we know.
func aNumber() shape {
	return kind(func(n *node) bool { v, is := n.value.(float64); return is && v > 0 })
}

func isText(n *node) bool { _, is := n.value.(string); return is }

// oneOf is one of these words.
func oneOf(words ...string) shape {
	return kind(func(n *node) bool { return isText(n) && slices.Contains(words, n.text()) })
}

// anURL is the address of a server.
func anURL() shape {
	return kind(func(n *node) bool {
		return strings.HasPrefix(n.text(), "http://") || strings.HasPrefix(n.text(), "https://")
	})
}

func listOf(one shape) shape {
	return func(n *node, place string) *misfit {
		if n.kind != '[' {
			return &misfit{n, place, true}
		}
		for i, e := range n.elements {
			if wrong := one(e, fmt.Sprintf("%s[%d]", place, i)); wrong != nil {
				return wrong
			}
		}
		return nil
	}
}

// mapOf is an object with any names.
func mapOf(one shape) shape {
	return func(n *node, place string) *misfit {
		if n.kind != '{' {
			return &misfit{n, place, true}
		}
		for _, m := range n.members {
			if wrong := one(m.value, join(place, m.key)); wrong != nil {
				return wrong
			}
		}
		return nil
	}
}

type members map[string]shape

// object is one with these members alone. Those that it needs are first in its list.
func object(all members, needs ...string) shape {
	return func(n *node, place string) *misfit {
		if n.kind != '{' {
			return &misfit{n, place, true}
		}
		for _, key := range needs {
			if n.get(key) == nil {
				return &misfit{n, join(place, key), true}
			}
		}
		for _, m := range n.members {
			one, known := all[m.key]
			if !known {
				return &misfit{m.value, join(place, m.key), false}
			}
			if wrong := one(m.value, join(place, m.key)); wrong != nil {
				return wrong
			}
		}
		return nil
	}
}

func join(place, key string) string { return strings.TrimPrefix(place+"."+key, ".") }

// claudeHook is a hook of anybody's. What its type is decides what else it has.
func claudeHook(n *node, place string) *misfit {
	common := members{"type": aText(), "timeout": aNumber(), "statusMessage": aText(), "once": aFlag(), "if": aText(), "name": aText(), "description": aText()}
	with := func(more members, needs ...string) *misfit {
		for key, one := range common {
			more[key] = one
		}
		return object(more, needs...)(n, place)
	}
	switch n.get("type").text() {
	case "command":
		return with(members{"command": aText(), "async": aFlag()}, "command")
	case "prompt", "agent":
		return with(members{"prompt": aText(), "model": aText()}, "prompt")
	case "http":
		return with(members{"url": anURL(), "headers": mapOf(aText())}, "url")
	}
	return &misfit{n, join(place, "type"), true}
}

// claudeSettings is a file that Claude Code takes, with our hooks in it.
func claudeSettings() shape {
	texts, group := listOf(aText()), object(members{"matcher": aText(), "hooks": listOf(claudeHook)}, "hooks")
	known := members{
		"hooks":             mapOf(listOf(group)),
		"env":               mapOf(kind(func(n *node) bool { return n.kind == 0 })),
		"cleanupPeriodDays": kind(func(n *node) bool { v, is := n.value.(float64); return is && v >= 1 && v == float64(int(v)) }),
		"permissions": object(members{"allow": texts, "deny": texts, "ask": texts, "additionalDirectories": texts,
			"defaultMode": oneOf("default", "acceptEdits", "plan", "bypassPermissions"), "disableBypassPermissionsMode": oneOf("disable")}),
		"statusLine":     object(members{"type": oneOf("command"), "command": aText(), "padding": kind(func(n *node) bool { _, is := n.value.(float64); return is })}, "type", "command"),
		"attribution":    object(members{"commit": aText(), "pr": aText()}),
		"enabledPlugins": mapOf(aFlag()),
		"extraKnownMarketplaces": mapOf(object(members{"source": object(members{"source": oneOf("github"), "repo": aText()}, "source", "repo")},
			"source")),
		"sandbox": object(members{"enabled": aFlag(), "autoAllowBashIfSandboxed": aFlag(), "excludedCommands": texts}),
	}
	for _, key := range []string{"$schema", "model", "apiKeyHelper", "outputStyle", "description"} {
		known[key] = aText()
	}
	for _, key := range []string{"disableAllHooks", "allowManagedHooksOnly", "enableAllProjectMcpServers", "includeCoAuthoredBy", "includeGitInstructions",
		"alwaysThinkingEnabled", "spinnerTipsEnabled", "respectGitignore"} {
		known[key] = aFlag()
	}
	for _, key := range []string{"enabledMcpjsonServers", "disabledMcpjsonServers", "companyAnnouncements"} {
		known[key] = texts
	}
	return object(known)
}

// doubt says why a host may not take the hooks in a file whose text could be read; empty:
// it is known to take them.
func (h Host) doubt(name, text string) string {
	if h.accepts == nil {
		return ""
	}
	text = strings.TrimPrefix(text, "\ufeff")
	at := func(offset int) string {
		line, column := jsonplace.Position([]byte(text), int64(offset))
		return fmt.Sprintf("%s:%d:%d", name, line, column)
	}
	dropped := " drops the whole file, and our hooks with it: "
	var value any
	var wrong *json.SyntaxError
	if err := json.Unmarshal([]byte(text), &value); errors.As(err, &wrong) {
		return h.Name + dropped + at(int(wrong.Offset)-1) + ": it is no strict JSON, which has no comments: " + err.Error()
	} else if err != nil {
		return h.Name + dropped + at(0) + ": " + err.Error()
	}
	root, err := parseJSON(text)
	if err != nil {
		return h.Name + dropped + at(0) + ": " + err.Error()
	}
	switch m := h.accepts(root, ""); {
	case m == nil:
		return ""
	case m.known:
		return h.Name + dropped + at(m.at.start) + ": " + m.place + " is missing, or no value that it takes"
	default:
		return "whether " + h.Name + " takes the file, and our hooks with it, is not known: " + at(m.at.start) + ": " + m.place
	}
}
