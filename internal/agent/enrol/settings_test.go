package enrol

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A setting that disables our hooks or changes their environment is found in every file that a
// host reads: of the codebase, the user or the machine.
func TestSettingsThatOverride(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		host       Host
		file, text string
		env        map[string]string
		want       string
	}{
		"managed":                {claude(), "machine/etc/claude-code/managed-settings.json", `{"allowManagedHooksOnly": true}`, nil, "allowManagedHooksOnly in /etc/claude-code/managed-settings.json"},
		"managed, plugins alone": {claude(), "machine/etc/claude-code/managed-settings.json", `{"strictPluginOnlyCustomization": ["hooks"]}`, nil, "strictPluginOnlyCustomization in /etc/claude-code/managed-settings.json"},
		"safe mode":              {claude(), "home/.claude/settings.json", `{"env": {"CLAUDE_CODE_SAFE_MODE": "1"}}`, nil, "env.CLAUDE_CODE_SAFE_MODE in ~/.claude/settings.json"},
		"managed in parts":       {claude(), "machine/etc/claude-code/managed-settings.d/10.json", `{"disableAllHooks": true}`, nil, "disableAllHooks in /etc/claude-code/managed-settings.d/10.json"},
		"managed variables":      {claude(), "machine/etc/claude-code/managed-settings.json", `{"env": {"PATH": "/bin"}}`, nil, "env.PATH in /etc/claude-code/managed-settings.json"},
		"of the user":            {claude(), "home/.claude/settings.json", `{"env": {"BASH_ENV": "/x"}}`, nil, "env.BASH_ENV in ~/.claude/settings.json"},
		"of the user, moved":     {claude(), "elsewhere/settings.json", `{"disableAllHooks": true}`, map[string]string{"CLAUDE_CONFIG_DIR": filepath.Join(dir, "of the user, moved/elsewhere")}, "disableAllHooks in ~/.claude/settings.json"},
		"written twice":          {claude(), "root/.claude/settings.local.json", `{"disableAllHooks": false, "disableAllHooks": true}`, nil, "disableAllHooks in .claude/settings.local.json"},
		"codex required":         {codex(), "machine/etc/codex/requirements.toml", "allow_managed_hooks_only = true\n", nil, "allow_managed_hooks_only in /etc/codex/requirements.toml"},
		"codex of the machine":   {codex(), "machine/etc/codex/config.toml", "[features]\nhooks = false\n", nil, "features.hooks in /etc/codex/config.toml"},
		"codex, moved":           {codex(), "elsewhere/config.toml", "[features]\ncodex_hooks = false\n", map[string]string{"CODEX_HOME": filepath.Join(dir, "codex, moved/elsewhere")}, "features.codex_hooks in ~/.codex/config.toml"},
		"gemini by name":         {gemini(), "root/.gemini/settings.json", `{"hooksConfig": {"disabled": ["lockkeeper hook gemini"]}}`, nil, "hooksConfig.disabled in .gemini/settings.json"},
		"gemini system":          {gemini(), "machine/etc/gemini-cli/settings.json", `{"hooksConfig": {"enabled": false}}`, nil, "hooksConfig.enabled in /etc/gemini-cli/settings.json"},
		"gemini, moved":          {gemini(), "elsewhere/.gemini/settings.json", `{"tools": {"enableHooks": false}}`, map[string]string{"GEMINI_CLI_HOME": filepath.Join(dir, "gemini, moved/elsewhere")}, "tools.enableHooks in ~/.gemini/settings.json"},
		"nothing of that kind":   {claude(), "root/.claude/settings.local.json", `{"disableAllHooks": false, "env": {"EDITOR": "vi", "GOFLAGS": "-v"}}`, nil, ""},
		"gemini, none by name":   {gemini(), "root/.gemini/settings.json", `{"hooksConfig": {"enabled": true, "disabled": []}}`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(dir, name)
			file := filepath.Join(at, test.file)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(test.text), 0o644); err != nil {
				t.Fatal(err)
			}
			s := Site{Root: filepath.Join(at, "root"), Records: filepath.Join(at, "records"), machine: filepath.Join(at, "machine"), Env: func(name string) (string, bool) {
				if name == "HOME" {
					return filepath.Join(at, "home"), true
				}
				value, set := test.env[name]
				return value, set
			}}
			st := s.Status(test.host)
			if got := st.Off + st.Stray; got != test.want || st.Fault != nil {
				t.Errorf("it is %q, want %q; %v", got, test.want, st.Fault)
			}
		})
	}
}

// Enrolling again fixes every difference of our hooks.
func TestEnrollingFixes(t *testing.T) {
	for _, h := range Hosts() {
		o := order{host: h, program: Program{Shell: serverName, Path: serverName}}
		right, err := hooks{}.into("{}\n", o)
		if err != nil {
			t.Fatal(err)
		}
		for was, is := range map[string]string{`"type": "command"`: `"async": true, "type": "command"`, `"timeout": `: `"if": "x", "timeout": `, `"hooks": [` + "\n": `"enabled": false, "hooks": [` + "\n", `"timeout": 3`: `"timeout": 1`} {
			wrong := strings.ReplaceAll(right, was, is)
			found, err := hooksIn(wrong, h)
			if err != nil || len(found) != len(h.turns) {
				t.Fatal(found, err)
			}
			for _, k := range found {
				if k.Differs == "" {
					t.Errorf("%s: %s with %s covers", h.Name, k.Event, is)
				}
			}
			if fixed, err := (hooks{}).into(wrong, o); err != nil || fixed != right {
				t.Errorf("%s: %v, and fixed it is\n%s", h.Name, err, fixed)
			}
		}
	}
}
