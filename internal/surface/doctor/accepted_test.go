package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/surface/view"
)

// Claude Code ignores a whole settings file if one value is invalid. The doctor does not count hooks in such a
// file, or in a file that it cannot judge, and reports the position of the error.
//
// shows: GP-5
func TestDroppedSettings(t *testing.T) {
	const file = ".claude/settings.json"
	begin := func(text string) func(string) string {
		return func(s string) string { return strings.Replace(s, "{", "{"+text, 1) }
	}
	hook := func(text string) func(string) string {
		return func(s string) string { return strings.Replace(s, `"hooks": {`, `"hooks": {`+text+",", 1) }
	}
	group := func(text string) func(string) string { return hook(`"Notification": [` + text + `]`) }
	entry := func(text string) func(string) string { return group(`{"hooks": [` + text + `]}`) }
	for name, test := range map[string]struct {
		change func(string) string
		says   string // expected finding; empty: enforced
	}{
		"a byte order mark":           {func(s string) string { return "\ufeff" + s }, ""},
		"what many have":              {begin(`"$schema": "x", "model": "opus", "permissions": {"allow": ["Bash(ls:*)"], "defaultMode": "plan"}, "env": {"A": "b", "C": 3},`), ""},
		"another's hook":              {group(`{"matcher": "x", "hooks": [{"type": "command", "command": "true", "timeout": 5}, {"type": "http", "url": "https://x.example"}]}, {"hooks": []}`), ""},
		"an event of another version": {hook(`"NoSuchEvent": []`), ""},

		"a comment":                 {begin("\n// ours\n"), "claude does not run hooks from this file: " + file + ":2:1: it is not strict JSON"},
		"a comment behind":          {func(s string) string { return s + "/* end */" }, "it is not strict JSON"},
		"a comma too many":          {func(s string) string { return strings.TrimSuffix(strings.TrimSpace(s), "}") + ",}" }, "a trailing comma is not allowed"},
		"a number for an object":    {begin(`"permissions": 3,`), "claude does not run hooks from this file: " + file + ":1:17: permissions"},
		"a list for an object":      {begin(`"env": [],`), ": env"},
		"an object as a variable":   {begin(`"env": {"A": {}},`), ": env.A"},
		"a wrong list":              {begin(`"permissions": {"allow": 3},`), ": permissions.allow"},
		"a wrong word":              {begin(`"permissions": {"defaultMode": "zzz"},`), ": permissions.defaultMode"},
		"nothing":                   {begin(`"model": null,`), ": model"},
		"half a thing":              {begin(`"statusLine": {"type": "command"},`), ": statusLine.command"},
		"no days":                   {begin(`"cleanupPeriodDays": 0,`), ": cleanupPeriodDays"},
		"a key that nobody knows":   {begin(`"zzz": 3,`), "whether claude runs hooks from this file is unknown: " + file + ":1:9: zzz"},
		"a permission nobody knows": {begin(`"permissions": {"zzz": 3},`), "is unknown: " + file + ":1:25: permissions.zzz"},
		"the same key twice":        {begin(`"model": 3, "model": "opus",`), ": model"},
		"hooks of another type":     {entry(`{"type": "banana"}`), ": hooks.Notification[0].hooks[0].type"},
		"a hook without a type":     {entry(`{}`), ": hooks.Notification[0].hooks[0].type"},
		"an invalid hook":           {entry(`3`), ": hooks.Notification[0].hooks[0]"},
		"a hook without a command":  {entry(`{"type": "command"}`), ".hooks[0].command"},
		"a time as a word":          {entry(`{"type": "command", "command": "true", "timeout": "5"}`), ".hooks[0].timeout"},
		"no time":                   {entry(`{"type": "command", "command": "true", "timeout": 0}`), ".hooks[0].timeout"},
		"a hook with a key unknown": {entry(`{"type": "command", "command": "true", "zzz": 0}`), "is unknown: "},
		"no address":                {entry(`{"type": "http", "url": "zzz"}`), ".hooks[0].url"},
		"a matcher that is no text": {group(`{"matcher": {"tools": ["x"]}, "hooks": []}`), ": hooks.Notification[0].matcher"},
		"a group without hooks":     {group(`{}`), ": hooks.Notification[0].hooks"},
		"an event without a list":   {hook(`"Notification": {}`), ": hooks.Notification"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := enrolled(t, "claude")
			at := filepath.Join(d.settings.Dir, file)
			text, err := os.ReadFile(at)
			if err != nil {
				t.Fatal(err)
			}
			d.write(at, test.change(string(text)), 0o644)
			tools, _, r := d.ways("claude")
			enforced := test.says == ""
			if (tools.Level == view.Enforced) != enforced || tools.Broken == enforced || r.OK != enforced || strings.Contains(r.Summary, view.Enforced) != enforced {
				t.Errorf("%+v\n%s", tools, r.Summary)
			}
			if !strings.Contains(tools.Fact, test.says) || (tools.Next == "") != enforced {
				t.Errorf("it does not say %q: %+v", test.says, tools)
			}
		})
	}
}

// Each settings file is ignored separately: hooks in other files still count.
func TestDroppedByItself(t *testing.T) {
	d := enrolled(t, "claude")
	project := filepath.Join(d.settings.Dir, ".claude/settings.json")
	text, err := os.ReadFile(project)
	if err != nil {
		t.Fatal(err)
	}
	d.write(filepath.Join(d.settings.Dir, ".claude/settings.local.json"), `{"zzz": 3}`, 0o644)
	if tools, _, _ := d.ways("claude"); tools.Level != view.Enforced {
		t.Errorf("%+v", tools)
	}
	d.write(filepath.Join(d.home, ".claude/settings.json"), string(text), 0o644)
	d.write(project, strings.Replace(string(text), "{", `{"model": 3,`, 1), 0o644)
	if tools, commands, _ := d.ways("claude"); tools.Level != view.Enforced || !strings.Contains(tools.Fact, "~/.claude/settings.json") || commands.Level != view.Detected {
		t.Errorf("%+v\n%+v", tools, commands)
	}
}
