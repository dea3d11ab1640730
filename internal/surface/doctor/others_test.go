package doctor_test

import (
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/surface/view"
)

// A hook of another program may change what a call writes after our check. The doctor names each
// such hook, and does not call the tools enforced.
//
// shows: GP-5
func TestHooksOfOthers(t *testing.T) {
	const before = `{"hooks": {"PreToolUse": [{%"hooks": [{"type": "command", "command": "rewrite"}]}]}}`
	matching := func(matcher string) string {
		return strings.Replace(before, "%", matcher, 1)
	}
	const hooks, manifest = "plugin/hooks/hooks.json", "plugin/.claude-plugin/plugin.json"
	on := `{"enabledPlugins": {"p@m": true}}`
	for name, test := range map[string]struct {
		local  string
		plugin map[string]string // files of the plugin
		says   string            // expected finding; empty: no other hooks
	}{
		"of all tools":           {matching(""), nil, "PreToolUse in .claude/settings.local.json (rewrite)"},
		"of one of ours":         {matching(`"matcher": "Read|Bash",`), nil, "PreToolUse in .claude/settings.local.json (rewrite)"},
		"by a pattern":           {matching(`"matcher": "^R",`), nil, "(rewrite)"},
		"of another tool":        {matching(`"matcher": "Read|Glob",`), nil, ""},
		"when a person is asked": {strings.Replace(matching(""), "PreToolUse", "PermissionRequest", 1), nil, "PermissionRequest in .claude/settings.local.json"},
		"afterwards":             {strings.Replace(matching(""), "PreToolUse", "PostToolUse", 1), nil, ""},
		"of another kind":        {`{"hooks": {"PreToolUse": [{"hooks": [{"type": "http", "url": "https://x.example"}]}]}}`, nil, "PreToolUse in .claude/settings.local.json"},
		"in a plugin":            {on, map[string]string{hooks: matching("")}, "PreToolUse in plugin p@m (rewrite)"},
		"a plugin without":       {on, map[string]string{manifest: `{"name": "p"}`}, ""},
		"a plugin's manifest":    {on, map[string]string{manifest: `{"hooks": "./more.json"}`}, "unknown hooks in plugin p@m"},
		"a plugin somewhere":     {on, nil, "unknown hooks in plugin p@m"},
		"a plugin that is off":   {`{"enabledPlugins": {"p@m": false}}`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := enrolled(t, "claude")
			d.write(filepath.Join(d.settings.Dir, ".claude/settings.local.json"), test.local, 0o644)
			for file, text := range test.plugin {
				d.write(filepath.Join(d.home, file), text, 0o644)
				d.write(filepath.Join(d.home, ".claude/plugins/installed_plugins.json"), `{"version": 2, "plugins": {"p@m": [{"scope": "user", "installPath": "`+filepath.Join(d.home, "plugin")+`"}]}}`, 0o644)
			}
			ways, r := d.said("claude")
			if tools := ways[0]; tools.Level != view.Enforced || !r.OK {
				t.Errorf("%+v", tools)
			}
			if test.says == "" {
				if len(ways) != 2 || r.Summary != "enforced: claude (hook)" {
					t.Errorf("%s: %+v", r.Summary, ways)
				}
				return
			}
			if len(ways) != 3 || r.Summary != "detected: claude" {
				t.Fatalf("%s: %+v", r.Summary, ways)
			}
			if changed := ways[2]; changed.Level != view.Detected || !strings.Contains(changed.Fact, test.says) || changed.Next == "" {
				t.Errorf("it does not say %q: %+v", test.says, changed)
			}
		})
	}
}
