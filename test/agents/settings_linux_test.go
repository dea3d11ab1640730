//go:build agents

package agents_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/agent/scriptedapi"
)

// takenSettings has one of each setting that the doctor reports as accepted.
const takenSettings = `"$schema": "https://json.schemastore.org/claude-code-settings.json", "model": "claude-sonnet-5", "apiKeyHelper": "echo not-a-real-key", "outputStyle": "default",
	"description": "ours", "language": "german", "plansDirectory": "./plans", "awsAuthRefresh": "true", "awsCredentialExport": "true", "gcpAuthRefresh": "true",
	"otelHeadersHelper": "true", "autoMemoryDirectory": "~/memory", "prUrlTemplate": "https://example.org/{number}", "minimumVersion": "1.0.0", "advisorModel": "opus",
	"autoMemoryEnabled": false, "fastMode": false, "skipWebFetchPreflight": true, "terminalProgressBarEnabled": false, "showTurnDuration": true, "prefersReducedMotion": true,
	"showThinkingSummaries": false, "disableSkillShellExecution": true, "autoCompactEnabled": true, "fileCheckpointingEnabled": true, "respondToBashCommands": true, "verbose": false,
	"claudeMdExcludes": ["x/**"], "availableModels": ["sonnet", "opus"], "skippedPlugins": ["p@q"], "effortLevel": "medium", "autoUpdatesChannel": "stable", "teammateMode": "auto",
	"forceLoginMethod": "console", "agent": "general-purpose", "disableAllHooks": false, "allowManagedHooksOnly": false, "enableAllProjectMcpServers": false, "includeCoAuthoredBy": false,
	"includeGitInstructions": true, "alwaysThinkingEnabled": false, "spinnerTipsEnabled": false, "respectGitignore": true, "enabledMcpjsonServers": ["x"],
	"disabledMcpjsonServers": ["y"], "companyAnnouncements": ["z"], "env": {"A": "a", "B": 1, "C": true, "D": null}, "cleanupPeriodDays": 30,
	"permissions": {"allow": ["Bash(ls:*)", "zzz("], "deny": ["Read(./.env)"], "ask": [], "additionalDirectories": ["../docs"], "defaultMode": "acceptEdits"},
	"statusLine": {"type": "command", "command": "true", "padding": 0}, "attribution": {"commit": "", "pr": ""}, "enabledPlugins": {"a@b": false},
	"extraKnownMarketplaces": {"m": {"source": {"source": "github", "repo": "example/none"}}}, "sandbox": {"enabled": false, "autoAllowBashIfSandboxed": true, "excludedCommands": ["git"]},`

const takenHooks = `"Notification": [{"matcher": "x", "hooks": [{"type": "command", "command": "true", "timeout": 5, "async": true, "statusMessage": "s", "once": true, "if": "Bash(git *)", "name": "n", "description": "d"},
	{"type": "prompt", "prompt": "p", "model": "m", "timeout": 0.5}, {"type": "agent", "prompt": "p"}, {"type": "mcp_tool", "server": "s", "tool": "t"}, {"type": "http", "url": "https://127.0.0.1:1/", "headers": {"A": "b"}}]}, {"hooks": []}],
	"NoSuchEvent": [{"hooks": [{"type": "command", "command": "true"}]}],`

// begin and hook return edits that insert text at the beginning of a file, and before its other
// hooks.
func begin(text string) func(string) string {
	return func(s string) string { return strings.Replace(s, "{", "{"+text, 1) }
}

func hook(text string) func(string) string {
	return func(s string) string { return strings.Replace(s, `"hooks": {`, `"hooks": {`+text, 1) }
}

// If one setting is invalid, the real Claude Code drops the whole settings file, without a
// message if there is no terminal. The doctor reports this. Newer versions drop only an invalid
// hook; the doctor does not rely on that. Claude Code accepts every setting that the doctor
// reports as accepted.
//
// shows: GP-5
func TestClaudeDropsSettings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(string) string
		says   string // the doctor's message; empty: enforced
		some   bool   // only some versions drop the file
	}{
		"all that is accepted": {func(s string) string { return "\ufeff" + begin(takenSettings)(hook(takenHooks)(s)) }, "", false},
		"a comment":            {begin("// of ours\n"), ".claude/settings.json:1:2: it is not strict JSON", false},
		"a wrong kind":         {begin(`"permissions": 3,`), ".claude/settings.json:1:17: permissions", false},
		"nothing":              {begin(`"model": null,`), "model", false},
		"another's hook":       {hook(`"Notification": [{"hooks": [{"type": "banana"}]}],`), "hooks.Notification[0].hooks[0].type", true},
		"another's time":       {hook(`"Stopped": [], "Notification": [{"hooks": [{"type": "command", "command": "true", "timeout": 0}]}],`), "hooks.Notification[0].hooks[0].timeout", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFresh(t, play(use(scriptedapi.Read("{dir}/"+posts)), use(scriptedapi.Write("{dir}/"+posts, "mine\n")), scriptedapi.Step{Text: "Done."}))
			if out, err := h.lockkeeper(nil, "init", "claude", "--yes"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			h.holds(t, posts, othersPosts)
			write(t, filepath.Join(h.dir, ".claude/settings.local.json"), `{"model": 3}`) // invalid, but only this file is dropped
			for _, dir := range []string{h.dir, h.home} {                                 // either file alone keeps the hooks
				file := filepath.Join(dir, ".claude/settings.json")
				write(t, file, test.change(read(t, file)))
			}
			if _, err := h.plainClaude(t.Context(), "Change the posts", filepath.Join(h.traces, "b")); err != nil {
				t.Fatalf("%v\n%s", err, read(t, filepath.Join(h.traces, "b.jsonl")))
			}
			want := othersPosts
			if test.says != "" {
				want = "mine\n"
			}
			if got := read(t, filepath.Join(h.dir, posts)); got != want && !(test.some && got == othersPosts) {
				t.Errorf("it holds %q: what Claude Code takes is otherwise by now, which internal/agent/enrol has to know\n%s", got, read(t, filepath.Join(h.traces, "b.jsonl")))
			}
			out, err := h.lockkeeper(nil, "doctor")
			if enforced := strings.Contains(out, "\nenforced: claude (hook)"); enforced != (test.says == "") || (err == nil) != enforced || !strings.Contains(out, test.says) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// If one entry of hooks.json is invalid, the real Codex drops the whole file.
//
// shows: GP-5
func TestCodexDropsHooks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(string) string
		says   string // the doctor's message; empty: a person must trust the hooks
	}{
		"all that is accepted": {func(s string) string {
			return begin(`"description": "ours",`)(hook(`"PreCompact": [{"matcher": "x", "hooks": [{"type": "command", "command": "true", "timeout": 5, "statusMessage": "s"}]}], "NoSuchEvent": [{"hooks": []}],`)(s))
		}, ""},
		"a comment":          {begin("// ours\n"), ".codex/hooks.json:1:2: it is not strict JSON"},
		"a mark":             {func(s string) string { return "\ufeff" + s }, "a byte order mark"},
		"an unknown key":     {begin(`"zzz": 3,`), "unknown: .codex/hooks.json:1:9: zzz"},
		"the same key twice": {hook(`"PreToolUse": [],`), "hooks.PreToolUse"},
		"another's hook":     {hook(`"PreCompact": [{"hooks": [{"type": "banana"}]}],`), "hooks.PreCompact[0].hooks[0]"},
		"another's time":     {hook(`"PreCompact": [{"hooks": [{"type": "command", "command": "true", "timeout": 0.5}]}],`), "hooks.PreCompact[0].hooks[0].timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := enrolled(t, "codex", programOf(t, codexVariable), plays())
			file := filepath.Join(h.dir, ".codex/hooks.json")
			write(t, file, test.change(read(t, file)))
			if found := h.trustsHooks(t); (len(found) == 5) != (test.says == "") || test.says != "" && found != nil {
				t.Errorf("codex finds %v: what it takes is otherwise by now, which internal/agent/enrol has to know", found)
			}
			if test.says == "" {
				h.advised(t, "trust the hooks with /hooks")
			} else if out, err := h.lockkeeper(nil, "doctor"); err == nil || !strings.HasSuffix(out, "\nbroken: codex\n") || !strings.Contains(out, test.says) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The real Gemini CLI accepts comments and invalid settings. It runs none of our hooks if
// another hook has a matcher that is not a string.
//
// shows: GP-5
func TestGeminiStumbles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(string) string
		left   string
		says   string // the doctor's message
	}{
		"all that is accepted": {func(s string) string {
			return begin("// ours\n\"zzz\": 3, \"general\": 3,")(hook(`"PreCompress": [{"matcher": "x", "sequential": true, "hooks": [{"type": "command", "command": "true", "timeout": 5, "name": "n", "description": "d"}]}],`)(strings.Replace(s, `"BeforeTool": [`, `"NoSuchEvent": [], "BeforeTool": [`, 1)))
		}, othersPosts, "enforced: gemini (hook)"},
		"another's hook": {func(s string) string {
			return strings.Replace(s, `"BeforeTool": [`, `"BeforeTool": [{"matcher": 3, "hooks": [{"type": "command", "command": "true"}]},`, 1)
		}, "mine\n", "hooks.BeforeTool[0].matcher"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := enrolled(t, "gemini", programOf(t, geminiVariable), play(
				use(scriptedapi.Tool{Name: "write_file", Input: map[string]any{"file_path": posts, "content": "mine\n"}}), scriptedapi.Step{Text: "Done."}))
			file := filepath.Join(h.dir, ".gemini/settings.json")
			write(t, file, test.change(read(t, file)))
			write(t, filepath.Join(h.home, ".gemini/trustedFolders.json"), fmt.Sprintf(`{%q: "TRUST_FOLDER"}`, h.dir))
			if out, err := h.lockkeeper(nil, "doctor"); (err == nil) != (test.left == othersPosts) || !strings.Contains(out, test.says) {
				t.Errorf("%v\n%s", err, out)
			}
			a, r := h.gemini(t, "Change the posts")
			h.plays(t, a, r, "Done.")
			if got := read(t, filepath.Join(h.dir, posts)); got != test.left {
				t.Errorf("it holds %q: what Gemini CLI takes is otherwise by now, which internal/agent/enrol has to know", got)
			}
		})
	}
}

// Another hook may replace the input of a call. The real Claude Code shows our hook the model's
// input and runs the replaced one, so the write succeeds. The doctor names such a hook, and the
// session that holds the file is told with its next call.
//
// shows: GP-5
func TestClaudeChangedInput(t *testing.T) {
	t.Parallel()
	for name, decision := range map[string]string{"with a decision": `"permissionDecision":"allow",`, "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFresh(t, play(use(scriptedapi.Read("{dir}/"+posts)), use(scriptedapi.Write("{dir}/"+users, "mine\n")), scriptedapi.Step{Text: "Done."}))
			if out, err := h.lockkeeper(nil, "init", "claude", "--yes"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			h.holds(t, posts, othersPosts)
			answer := filepath.Join(h.root, "answer")
			write(t, answer, fmt.Sprintf(`{"hookSpecificOutput":{"hookEventName":"PreToolUse",%s"updatedInput":{"file_path":%q,"content":"mine\n"}}}`, decision, filepath.Join(h.dir, posts)))
			write(t, filepath.Join(h.dir, ".claude/settings.local.json"), fmt.Sprintf(`{"hooks":{"PreToolUse":[{"matcher":"Write","hooks":[{"type":"command","command":"cat %s"}]}]}}`, answer))
			if _, err := h.plainClaude(t.Context(), "Change the users", filepath.Join(h.traces, "b")); err != nil {
				t.Fatalf("%v\n%s", err, read(t, filepath.Join(h.traces, "b.jsonl")))
			}
			if got := read(t, filepath.Join(h.dir, posts)); got != "mine\n" {
				t.Errorf("it holds %q: hooks are shown what others make of a call by now, which docs/doctor.md and the doctor have to say", got)
			}
			if out, err := h.lockkeeper(nil, "doctor"); err != nil || !strings.HasSuffix(out, "\ndetected: claude\n") || !strings.Contains(out, "PreToolUse in .claude/settings.local.json (cat "+answer+")") {
				t.Errorf("%v\n%s", err, out)
			}
			told := h.otter(t, "PreToolUse", "Edit", map[string]any{"file_path": filepath.Join(h.dir, users)})
			if !strings.Contains(told, "DISTURBED app/posts.rb") || !strings.Contains(told, "Your version is kept") {
				t.Errorf("the holder is not told: %s", told)
			}
		})
	}
}
